SELECT a.version, a.id, a.actor, a.at, s.text
FROM activations AS a
JOIN snapshots AS s ON s.kind = a.kind AND s.id = a.id
WHERE a.kind = $1
ORDER BY a.version DESC
LIMIT 1
