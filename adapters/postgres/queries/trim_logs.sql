DELETE FROM job_logs
USING (
    SELECT i.job_id, kept.log_id
    FROM unnest($1::text[]) AS i(job_id)
    CROSS JOIN LATERAL (
        SELECT log_id FROM job_logs WHERE job_logs.job_id = i.job_id ORDER BY log_id DESC OFFSET $2 LIMIT 1
    ) AS kept
) AS old
WHERE job_logs.job_id = old.job_id AND job_logs.log_id <= old.log_id
