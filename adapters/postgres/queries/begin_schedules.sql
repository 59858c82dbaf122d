INSERT INTO schedules (tenant, name, version, wakes_at, body)
SELECT i.tenant, i.name, 1, i.wakes_at, i.body
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[]) AS i(tenant, name, wakes_at, body)
ON CONFLICT (tenant, name) DO NOTHING
RETURNING tenant, name
