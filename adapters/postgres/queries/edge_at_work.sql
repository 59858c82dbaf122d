SELECT edge FROM edges
WHERE closed_at IS NULL
    AND expires_at > COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
LIMIT 1
