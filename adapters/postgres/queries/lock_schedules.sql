-- Locked in one order by everybody: the names come sorted, and each is looked up in its turn. Asked to sort, the planner would
-- walk all schedules, and the names once for each of them.
SELECT s.tenant, s.name, s.version
FROM unnest($1::text[], $2::text[]) AS i(tenant, name)
JOIN schedules AS s ON s.tenant = i.tenant AND s.name = i.name
FOR UPDATE OF s
