SELECT jobs.job_id
FROM jobs_hot
JOIN jobs ON jobs.seq = jobs_hot.seq
WHERE jobs_hot.session = ?1
ORDER BY jobs_hot.seq
