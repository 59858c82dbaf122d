SELECT tenant, name, version, wakes_at, body
FROM schedules
WHERE wakes_at IS NOT NULL AND (wakes_at, tenant, name) > ($2, $3, $4)
    AND wakes_at <= (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))
ORDER BY wakes_at, tenant, name
LIMIT $5
