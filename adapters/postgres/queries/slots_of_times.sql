SELECT s.tenant, s.schedule, s.series, s.nominal, s.place
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS i(tenant, schedule, first_place, last_place)
JOIN schedule_slots AS s
    ON s.tenant = i.tenant AND s.schedule = i.schedule AND s.place BETWEEN i.first_place AND i.last_place
