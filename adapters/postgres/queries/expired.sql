SELECT seq, version, state, hash, life, request, payload, job_id, deadline_at
FROM jobs_hot
WHERE deadline_at IS NOT NULL AND (deadline_at, seq) > ($2, $3)
    AND deadline_at <= (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))
ORDER BY deadline_at, seq
LIMIT $4
