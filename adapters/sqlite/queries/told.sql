SELECT jobs_done.seq, jobs_done.version, jobs_done.state, jobs.hash, jobs_done.life, jobs.request, jobs_done.result
FROM jobs_done
JOIN jobs ON jobs.seq = jobs_done.seq
WHERE jobs_done.seq = ?1
UNION ALL
SELECT jobs_hot.seq, jobs_hot.version, jobs_hot.state, jobs.hash, jobs_hot.life, jobs.request, NULL
FROM jobs_hot
JOIN jobs ON jobs.seq = jobs_hot.seq
WHERE jobs_hot.seq = ?1
