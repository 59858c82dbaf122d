SELECT j.seq, j.version, j.state, j.hash, j.life, j.request, j.result
FROM (SELECT seq FROM children WHERE parent = $1 AND life = $2 AND seq > $3 ORDER BY seq LIMIT $4) AS c
CROSS JOIN LATERAL (
    SELECT seq, version, state, hash, life, request, NULL AS result FROM jobs_hot WHERE jobs_hot.seq = c.seq
    UNION ALL
    SELECT seq, version, state, hash, life, request, result FROM jobs_done WHERE jobs_done.seq = c.seq
) AS j
ORDER BY c.seq
