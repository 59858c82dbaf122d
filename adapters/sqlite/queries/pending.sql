SELECT seq, version, state, hash, life, request, COALESCE(payload, (SELECT body FROM payloads WHERE payloads.seq = jobs_hot.seq))
FROM jobs_hot
WHERE state = 0 AND (due_at, seq) > (?1, ?2) AND due_at <= ?3
ORDER BY due_at, seq
LIMIT ?4
