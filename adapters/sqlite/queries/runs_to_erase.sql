SELECT run_no, run_id
FROM runs
WHERE tenant = ?1 AND state >= 4
    AND NOT EXISTS (SELECT 1 FROM runs AS outer_run WHERE outer_run.run_id = runs.parent AND outer_run.state < 4)
ORDER BY run_no
LIMIT ?2
