SELECT seq, version, state, hash, life, request, COALESCE(payload, (SELECT body FROM payloads WHERE payloads.seq = jobs_hot.seq))
FROM jobs_hot
WHERE deadline_at IS NOT NULL AND deadline_at <= ?1
ORDER BY deadline_at, seq
LIMIT ?2
