SELECT jobs_hot.seq, jobs_hot.version, jobs_hot.state, jobs.hash, jobs_hot.life, jobs.request, jobs.tenant, jobs.topic
FROM jobs_hot
JOIN jobs ON jobs.seq = jobs_hot.seq
WHERE jobs_hot.seq < ?1
ORDER BY jobs_hot.seq DESC
