SELECT seq, version, state, hash, life, request, payload, job_id
FROM jobs_hot
WHERE session = $1
ORDER BY seq
