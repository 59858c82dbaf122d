SELECT jobs_done.seq, jobs_done.version, jobs_done.state, jobs.hash, jobs_done.life, jobs.request, jobs.payload
FROM jobs_done
JOIN jobs ON jobs.seq = jobs_done.seq
WHERE jobs_done.seq = ?1
