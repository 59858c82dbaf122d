SELECT seq
FROM jobs_done
WHERE ended_at < ?1
    AND NOT EXISTS (
        SELECT 1 FROM run_jobs JOIN runs ON runs.run_id = run_jobs.run_id AND runs.state < 4
        WHERE run_jobs.seq = jobs_done.seq
    )
    -- A child stays until its parent has ended.
    AND NOT EXISTS (
        SELECT 1 FROM children
        JOIN jobs AS parents ON parents.job_id = children.parent
        JOIN jobs_hot ON jobs_hot.seq = parents.seq
        WHERE children.seq = jobs_done.seq
    )
ORDER BY ended_at, seq
LIMIT ?2
