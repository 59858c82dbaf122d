WITH moment AS MATERIALIZED (
    SELECT $4::bigint AS shard
), old AS MATERIALIZED (
    SELECT job_id, version
    FROM jobs_done
    WHERE ended_at < (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)) - $2
        AND NOT EXISTS (
            SELECT 1 FROM run_jobs JOIN runs ON runs.run_id = run_jobs.run_id AND runs.state < 4
            WHERE run_jobs.job_id = jobs_done.job_id
        )
        -- A child stays until its parent has ended.
        AND NOT EXISTS (
            SELECT 1 FROM children JOIN jobs_hot ON jobs_hot.job_id = children.parent
            WHERE children.job_id = jobs_done.job_id
        )
    ORDER BY ended_at, seq
    LIMIT $3
)
