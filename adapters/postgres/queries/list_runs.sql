SELECT run_no, CASE WHEN wanted THEN head END, version, state, wakes_at
FROM (
    SELECT run_no, head, version, state, wakes_at,
        ($3::text IS NULL OR tenant = $3) AND ($4::text IS NULL OR dag = $4) AND ($5::bigint IS NULL OR state = $5)
            AND ($6::boolean IS NULL OR (run_id LIKE 'run-saga-%') = $6) AS wanted
    FROM runs
    WHERE run_no < $1
    ORDER BY run_no DESC
    LIMIT $2
) AS looked_at
