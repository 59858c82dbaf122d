SELECT jobs.seq
FROM jobs
JOIN jobs_done ON jobs_done.seq = jobs.seq
WHERE jobs.seq > ?2 AND jobs.seq <= ?3 AND jobs.tenant = ?1
    AND NOT EXISTS (
        SELECT 1 FROM run_jobs JOIN runs ON runs.run_id = run_jobs.run_id AND runs.state < 4
        WHERE run_jobs.seq = jobs.seq
    )
    -- A child stays until its parent has ended.
    AND NOT EXISTS (
        SELECT 1 FROM children
        JOIN jobs AS parents ON parents.job_id = children.parent
        JOIN jobs_hot ON jobs_hot.seq = parents.seq
        WHERE children.seq = jobs.seq
    )
ORDER BY jobs.seq
LIMIT ?4
