WITH old AS MATERIALIZED (
    SELECT tenant, schedule, series, nominal, decided_at
    FROM schedule_slots
    WHERE outcome NOT IN (0, 2)
        AND decided_at < (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)) - $2
    ORDER BY decided_at, tenant, schedule, series, nominal
    LIMIT $3
), gone AS (
    -- Unless it was decided again meanwhile.
    DELETE FROM schedule_slots AS s USING old
    WHERE s.tenant = old.tenant AND s.schedule = old.schedule AND s.series = old.series AND s.nominal = old.nominal
        AND s.decided_at = old.decided_at AND s.outcome NOT IN (0, 2)
    RETURNING s.nominal
)
SELECT count(*) FROM gone
