-- Later lives have later children.
SELECT j.seq, j.version, j.state, j.hash, j.life,
    CASE WHEN ($4::text IS NULL OR j.tenant = $4) AND ($5::text IS NULL OR j.topic = $5) AND ($6::bigint IS NULL OR j.state = $6)
        THEN j.request END
FROM (SELECT life, seq FROM children WHERE parent = $1 AND seq < $2 ORDER BY life DESC, seq DESC LIMIT $3) AS c
CROSS JOIN LATERAL (
    SELECT seq, version, state, hash, life, request, tenant, topic FROM jobs_hot WHERE jobs_hot.seq = c.seq
    UNION ALL
    SELECT seq, version, state, hash, life, request, tenant, topic FROM jobs_done WHERE jobs_done.seq = c.seq
) AS j
ORDER BY c.life DESC, c.seq DESC
