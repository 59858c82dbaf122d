SELECT job_id, seq
FROM jobs_done
WHERE seq > $2 AND seq <= $3 AND tenant = $1
    AND NOT EXISTS (
        SELECT 1 FROM run_jobs JOIN runs ON runs.run_id = run_jobs.run_id AND runs.state < 4
        WHERE run_jobs.job_id = jobs_done.job_id
    )
    -- A child stays until its parent has ended.
    AND NOT EXISTS (
        SELECT 1 FROM children JOIN jobs_hot ON jobs_hot.job_id = children.parent
        WHERE children.job_id = jobs_done.job_id
    )
ORDER BY seq
LIMIT $4
