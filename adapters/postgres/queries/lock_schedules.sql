-- Locked in one order by everybody.
SELECT s.tenant, s.name, s.version
FROM unnest($1::text[], $2::text[]) AS i(tenant, name)
JOIN schedules AS s ON s.tenant = i.tenant AND s.name = i.name
ORDER BY s.tenant, s.name
FOR UPDATE OF s
