SELECT seq, version, state, hash, life, request, COALESCE(payload, (SELECT body FROM payloads WHERE payloads.seq = jobs_done.seq))
FROM jobs_done
WHERE seq = ?1
