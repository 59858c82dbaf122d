DELETE FROM schedules USING unnest($1::text[], $2::text[]) AS i(tenant, name)
WHERE schedules.tenant = i.tenant AND schedules.name = i.name
