SELECT jobs.job_id, jobs.tenant, jobs.hash, COALESCE(jobs_hot.state, jobs_done.state)
FROM jobs
LEFT JOIN jobs_hot ON jobs_hot.seq = jobs.seq
LEFT JOIN jobs_done ON jobs_done.seq = jobs.seq
WHERE jobs.seq = ?1
