DELETE FROM run_keys
WHERE free_at <= (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))
