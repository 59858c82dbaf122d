SELECT s.tenant, s.name, s.version, s.wakes_at, s.body
FROM unnest($1::text[], $2::text[]) AS i(tenant, name)
JOIN schedules AS s ON s.tenant = i.tenant AND s.name = i.name
