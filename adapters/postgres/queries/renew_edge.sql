INSERT INTO edges (edge, expires_at)
VALUES ($2, COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) + $3)
ON CONFLICT (edge) DO UPDATE SET expires_at = excluded.expires_at WHERE edges.closed_at IS NULL
RETURNING edge
