SELECT (SELECT wakes_at FROM schedules WHERE wakes_at IS NOT NULL ORDER BY wakes_at LIMIT 1),
    COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
