SELECT run_no, run_id
FROM runs
WHERE ended_at < ?1
    AND NOT EXISTS (SELECT 1 FROM runs AS outer_run WHERE outer_run.run_id = runs.parent AND outer_run.state < 4)
ORDER BY ended_at, run_id
LIMIT ?2
