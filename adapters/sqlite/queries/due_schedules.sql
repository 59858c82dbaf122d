SELECT tenant, name, version, wakes_at, body
FROM schedules
WHERE wakes_at IS NOT NULL AND wakes_at <= ?1
ORDER BY wakes_at, tenant, name
LIMIT ?2
