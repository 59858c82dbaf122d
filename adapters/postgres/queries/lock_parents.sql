SELECT 1 FROM jobs_hot WHERE job_id = ANY($1::text[]) ORDER BY job_id FOR SHARE
