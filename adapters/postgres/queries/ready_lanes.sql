-- Counted in the index alone; what a lane is called follows from any job that waits in it.
SELECT sample.seq, sample.version, sample.state, sample.hash, sample.life, sample.request, counted.waiting, counted.lane
FROM (
    SELECT lane, count(*) AS waiting
    FROM jobs_hot
    WHERE state = 2 AND due_at <= (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))
    GROUP BY lane
) AS counted
CROSS JOIN LATERAL (
    SELECT seq, version, state, hash, life, request
    FROM jobs_hot
    WHERE jobs_hot.state = 2 AND jobs_hot.lane = counted.lane
    ORDER BY due_at, seq
    LIMIT 1
) AS sample
