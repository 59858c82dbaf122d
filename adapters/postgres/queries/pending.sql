SELECT seq, version, state, hash, life, request, payload, job_id, due_at
FROM jobs_hot
WHERE state = 0 AND (due_at, seq) > ($2, $3)
    AND due_at <= (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))
ORDER BY due_at, seq
LIMIT $4
