INSERT INTO job_logs (job_id, attempt, at, line)
SELECT i.job_id, i.attempt, i.at, i.line
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[]) AS i(job_id, attempt, at, line)
WHERE EXISTS (SELECT 1 FROM jobs_hot WHERE jobs_hot.job_id = i.job_id)
    OR EXISTS (SELECT 1 FROM jobs_done WHERE jobs_done.job_id = i.job_id)
