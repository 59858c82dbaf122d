SELECT seq, version, state, hash, life, request, COALESCE(payload, (SELECT body FROM payloads WHERE payloads.seq = jobs_hot.seq))
FROM jobs_hot
WHERE session = ?1
ORDER BY seq
