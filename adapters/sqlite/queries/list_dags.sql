SELECT tenant, name, MAX(version), snapshot, actor, at, pins, text
FROM dags
WHERE tenant = ?1 AND name > ?2
GROUP BY name
ORDER BY name
LIMIT ?3
