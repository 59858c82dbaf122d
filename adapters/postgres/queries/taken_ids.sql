SELECT job_id FROM jobs_hot WHERE job_id = ANY($1::text[])
UNION ALL
SELECT job_id FROM jobs_done WHERE job_id = ANY($1::text[])
