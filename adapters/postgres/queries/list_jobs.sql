-- Every row looked at is named, so that the next page knows where to go on; only wanted ones are read in full.
SELECT seq, version, state, hash, life, CASE WHEN wanted THEN request END
FROM (
    SELECT seq, version, state, hash, life, request,
        ($4::text IS NULL OR tenant = $4) AND ($5::text IS NULL OR topic = $5) AND ($6::bigint IS NULL OR state = $6) AS wanted
    FROM (
        (SELECT seq, version, state, hash, life, request, tenant, topic
        FROM jobs_hot WHERE seq < $1 ORDER BY seq DESC LIMIT $3)
        UNION ALL
        (SELECT seq, version, state, hash, life, request, tenant, topic
        FROM jobs_done WHERE seq < $2 ORDER BY seq DESC LIMIT $3)
    ) AS both_tables
    ORDER BY seq DESC
    LIMIT $3
) AS looked_at
