SELECT run_no, version, state, wakes_at, head, tenant, dag, run_id LIKE 'run-saga-%'
FROM runs
WHERE run_no < ?1
ORDER BY run_no DESC
