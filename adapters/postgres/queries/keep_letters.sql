WITH changed AS (
    INSERT INTO dead_letters (job_id, tenant, topic, priority, reason, letter)
    SELECT i.job_id, i.tenant, i.topic, i.priority, i.reason, i.letter
    FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[])
        AS i(job_id, tenant, topic, priority, reason, letter)
    RETURNING priority
)
UPDATE totals
SET dead_critical = totals.dead_critical + c.critical, dead_high = totals.dead_high + c.high,
    dead_default = totals.dead_default + c.usual, dead_low = totals.dead_low + c.low
FROM (
    SELECT count(*) FILTER (WHERE priority = 0) AS critical, count(*) FILTER (WHERE priority = 1) AS high,
        count(*) FILTER (WHERE priority = 2) AS usual, count(*) FILTER (WHERE priority = 3) AS low
    FROM changed
) AS c
WHERE totals.shard = $1
