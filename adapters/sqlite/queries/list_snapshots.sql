SELECT MAX(version) AS latest, id, actor, at
FROM activations
WHERE kind = ?1
GROUP BY id
ORDER BY latest DESC
LIMIT ?2
