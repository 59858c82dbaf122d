, counted AS (
    UPDATE totals
    SET live_critical = totals.live_critical + sign.live * c.critical,
        live_high = totals.live_high + sign.live * c.high,
        live_default = totals.live_default + sign.live * c.usual,
        live_low = totals.live_low + sign.live * c.low,
        ended = totals.ended + sign.ended * c.jobs
    FROM sign, (
        SELECT count(*) FILTER (WHERE priority = 0) AS critical, count(*) FILTER (WHERE priority = 1) AS high,
            count(*) FILTER (WHERE priority = 2) AS usual, count(*) FILTER (WHERE priority = 3) AS low, count(*) AS jobs
        FROM changed
    ) AS c
    WHERE totals.shard = (SELECT shard FROM moment) AND c.jobs > 0
)
SELECT job_id, seq FROM changed
