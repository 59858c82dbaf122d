DELETE FROM schedule_slots
WHERE (tenant, schedule, series, nominal) IN (
    SELECT tenant, schedule, series, nominal
    FROM schedule_slots
    WHERE outcome NOT IN (0, 2) AND decided_at < ?1
    ORDER BY decided_at, tenant, schedule, series, nominal
    LIMIT ?2
)
