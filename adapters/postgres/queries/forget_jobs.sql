-- Ended jobs, if they are as they were found, with all that belongs to them.
, gone AS (
    DELETE FROM jobs_done USING old WHERE jobs_done.job_id = old.job_id AND jobs_done.version = old.version
    RETURNING jobs_done.job_id, jobs_done.tenant,
        (octet_length(jobs_done.payload) + COALESCE(octet_length(jobs_done.result), 0))::bigint AS bytes
), ids AS (
    DELETE FROM job_ids USING gone WHERE job_ids.job_id = gone.job_id
), logs AS (
    DELETE FROM job_logs USING gone WHERE job_logs.job_id = gone.job_id
), keys AS (
    DELETE FROM idempotency USING gone WHERE idempotency.job_id = gone.job_id
), owed AS (
    DELETE FROM duties USING gone WHERE duties.job_id = gone.job_id
), parts AS (
    DELETE FROM run_jobs USING gone WHERE run_jobs.job_id = gone.job_id
), kin AS (
    DELETE FROM children USING gone WHERE children.job_id = gone.job_id
), stood_for AS (
    DELETE FROM memos USING gone WHERE memos.job_id = gone.job_id
), letters AS (
    DELETE FROM dead_letters USING gone WHERE dead_letters.job_id = gone.job_id RETURNING dead_letters.priority
), counted AS (
    UPDATE totals
    SET dead_critical = totals.dead_critical - c.critical, dead_high = totals.dead_high - c.high,
        dead_default = totals.dead_default - c.usual, dead_low = totals.dead_low - c.low,
        ended = totals.ended - (SELECT count(*) FROM gone)
    FROM (
        SELECT count(*) FILTER (WHERE priority = 0) AS critical, count(*) FILTER (WHERE priority = 1) AS high,
            count(*) FILTER (WHERE priority = 2) AS usual, count(*) FILTER (WHERE priority = 3) AS low
        FROM letters
    ) AS c
    WHERE totals.shard = (SELECT shard FROM moment) AND EXISTS (SELECT 1 FROM gone)
), weighed AS (
    SELECT tenant, 0::bigint AS live, -1::bigint AS ended, 0::bigint AS runs, -bytes AS bytes FROM gone
)
