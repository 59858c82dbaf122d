-- Of each life from the latest child on, one by one, until one is met that has not ended: jobs end in about the order in which
-- they came, so that is mostly the first. The inner LIMIT keeps planners from beginning with everything that lives.
SELECT latest.seq
FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS i(parent, life, n)
LEFT JOIN LATERAL (
    SELECT c.seq
    FROM children AS c
    CROSS JOIN LATERAL (SELECT h.seq FROM jobs_hot AS h WHERE h.seq = c.seq LIMIT 1) AS alive
    WHERE c.parent = i.parent AND c.life = i.life
    ORDER BY c.seq DESC
    LIMIT 1
) AS latest ON TRUE
ORDER BY i.n
