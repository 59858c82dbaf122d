WITH changed AS (DELETE FROM dead_letters WHERE job_id = ANY($1::text[]) RETURNING priority)
UPDATE totals
SET dead_critical = totals.dead_critical - c.critical, dead_high = totals.dead_high - c.high,
    dead_default = totals.dead_default - c.usual, dead_low = totals.dead_low - c.low
FROM (
    SELECT count(*) FILTER (WHERE priority = 0) AS critical, count(*) FILTER (WHERE priority = 1) AS high,
        count(*) FILTER (WHERE priority = 2) AS usual, count(*) FILTER (WHERE priority = 3) AS low, count(*) AS letters
    FROM changed
) AS c
WHERE totals.shard = $2 AND c.letters > 0
