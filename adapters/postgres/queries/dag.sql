SELECT tenant, name, version, snapshot, actor, at, pins, text
FROM dags
WHERE tenant = $1 AND name = $2 AND version <= $3
ORDER BY version DESC
LIMIT 1
