-- The schedules first, so that no more slots come.
WITH gone AS (
    DELETE FROM schedules WHERE tenant = $1
), page AS MATERIALIZED (
    SELECT schedule, series, nominal FROM schedule_slots WHERE tenant = $1 ORDER BY schedule, series, nominal LIMIT $2
)
DELETE FROM schedule_slots AS s USING page
WHERE s.tenant = $1 AND s.schedule = page.schedule AND s.series = page.series AND s.nominal = page.nominal
