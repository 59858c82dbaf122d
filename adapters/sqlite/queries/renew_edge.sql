INSERT INTO edges (edge, expires_at) VALUES (?1, ?2)
ON CONFLICT (edge) DO UPDATE SET expires_at = excluded.expires_at WHERE closed_at IS NULL
