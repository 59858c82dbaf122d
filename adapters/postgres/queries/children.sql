-- As many as fit, and the first in any case. The length of a text is known without reading it, so what does not fit is not read.
SELECT seq, version, state, hash, life, request, result, found
FROM (
    SELECT c.seq, j.version, j.state, j.hash, j.life, j.request, j.result,
        count(*) OVER () AS found,
        row_number() OVER (ORDER BY c.seq) AS place,
        sum(octet_length(j.life) + COALESCE(octet_length(j.result), 0)) OVER (ORDER BY c.seq) AS so_far
    FROM (SELECT seq FROM children WHERE parent = $1 AND life = $2 AND seq > $3 ORDER BY seq LIMIT $4) AS c
    CROSS JOIN LATERAL (
        SELECT version, state, hash, life, request, NULL AS result FROM jobs_hot WHERE jobs_hot.seq = c.seq
        UNION ALL
        SELECT version, state, hash, life, request, result FROM jobs_done WHERE jobs_done.seq = c.seq
    ) AS j
) AS placed
WHERE place = 1 OR so_far <= $5::bigint
ORDER BY seq
