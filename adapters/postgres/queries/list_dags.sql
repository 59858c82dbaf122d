SELECT d.tenant, d.name, d.version, d.snapshot, d.actor, d.at, d.pins, d.text
FROM (
    SELECT name, max(version) AS latest FROM dags WHERE tenant = $1 AND name > $2 GROUP BY name ORDER BY name LIMIT $3
) AS last
JOIN dags AS d ON d.tenant = $1 AND d.name = last.name AND d.version = last.latest
ORDER BY d.name
