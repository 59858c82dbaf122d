INSERT INTO schedules (tenant, name, version, wakes_at, body) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (tenant, name) DO UPDATE SET version = excluded.version, wakes_at = excluded.wakes_at, body = excluded.body
