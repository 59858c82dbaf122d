SELECT seq, version, state, hash, life, request, COALESCE(payload, (SELECT body FROM payloads WHERE payloads.seq = jobs_hot.seq))
FROM jobs_hot
WHERE state = 2 AND lane_id = (SELECT lane_id FROM lanes WHERE key = ?1) AND (due_at, seq) > (?2, ?3) AND due_at <= ?4
ORDER BY due_at, seq
LIMIT ?5
