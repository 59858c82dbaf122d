SELECT activations.version, activations.id, activations.actor, activations.at, snapshots.text
FROM activations
JOIN snapshots ON snapshots.kind = activations.kind AND snapshots.id = activations.id
WHERE activations.kind = ?1
ORDER BY activations.version DESC
LIMIT 1
