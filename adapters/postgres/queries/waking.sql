SELECT run_id
FROM runs
WHERE state < 4 AND wakes_at IS NOT NULL
    AND wakes_at <= (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))
ORDER BY wakes_at, run_id
LIMIT $2
