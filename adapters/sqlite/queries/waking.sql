SELECT run_id
FROM runs
WHERE state < 4 AND wakes_at IS NOT NULL AND wakes_at <= ?1
ORDER BY wakes_at, run_id
LIMIT ?2
