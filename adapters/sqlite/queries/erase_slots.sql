DELETE FROM schedule_slots
WHERE (tenant, schedule, series, nominal) IN (
    SELECT tenant, schedule, series, nominal FROM schedule_slots
    WHERE tenant = ?1
    ORDER BY schedule, series, nominal
    LIMIT ?2
)
