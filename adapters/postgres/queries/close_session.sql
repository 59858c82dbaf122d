UPDATE sessions SET closed_at = COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
WHERE session = $2 AND epoch = $3 AND closed_at IS NULL
RETURNING epoch
