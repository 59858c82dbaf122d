DELETE FROM edges
WHERE closed_at <= ?1 AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.edge = edges.edge)
