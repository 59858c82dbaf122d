-- A slot keeps the place it had first.
INSERT INTO schedule_slots (tenant, schedule, series, nominal, place, outcome, decided_at, body)
SELECT i.tenant, i.schedule, i.series, i.nominal, i.place, i.outcome, i.decided_at, i.body
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[])
    AS i(tenant, schedule, series, nominal, place, outcome, decided_at, body)
ON CONFLICT (tenant, schedule, series, nominal) DO UPDATE
SET outcome = excluded.outcome, decided_at = excluded.decided_at, body = excluded.body
