SELECT state, events FROM jobs_hot WHERE job_id = $1
UNION ALL
SELECT state, events FROM jobs_done WHERE job_id = $1
