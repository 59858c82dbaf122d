SELECT tenant, name, version, wakes_at, body FROM schedules WHERE tenant = $1 AND name > $2 ORDER BY name LIMIT $3
