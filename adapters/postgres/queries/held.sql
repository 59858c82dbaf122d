SELECT seq, version, state, hash, life, request, payload
FROM jobs_hot
WHERE session = $1
ORDER BY seq
