SELECT run_id, hash FROM run_keys
WHERE tenant = $2 AND key = $3
    AND free_at > COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
