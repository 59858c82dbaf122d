SELECT seq
FROM jobs_done
WHERE ended_at < ?1
    AND NOT EXISTS (
        SELECT 1 FROM run_jobs JOIN runs ON runs.run_id = run_jobs.run_id AND runs.state < 4
        WHERE run_jobs.seq = jobs_done.seq
    )
ORDER BY ended_at, seq
LIMIT ?2
