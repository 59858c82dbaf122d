SELECT jobs.tenant, octet_length(jobs.payload) + COALESCE(octet_length(jobs_done.result), 0)
FROM jobs
JOIN jobs_done ON jobs_done.seq = jobs.seq
WHERE jobs.seq = ?1
