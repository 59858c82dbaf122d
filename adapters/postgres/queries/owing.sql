SELECT j.seq, j.version, j.state, j.hash, j.life, j.request, j.payload, d.job_id
FROM (SELECT seq, job_id FROM duties WHERE kind = $1 AND seq > $2 ORDER BY seq LIMIT $3) AS d
CROSS JOIN LATERAL (
    -- Whoever owes a scan may have ended.
    SELECT seq, version, state, hash, life, request, payload FROM jobs_hot WHERE jobs_hot.job_id = d.job_id
    UNION ALL
    SELECT seq, version, state, hash, life, request, payload FROM jobs_done WHERE jobs_done.job_id = d.job_id
) AS j
ORDER BY d.seq
