SELECT a.version, a.id, a.actor, a.at
FROM (SELECT max(version) AS latest FROM activations WHERE kind = $1 GROUP BY id ORDER BY latest DESC LIMIT $2) AS last
JOIN activations AS a ON a.kind = $1 AND a.version = last.latest
ORDER BY a.version DESC
