-- Each is locked and has the version that was read.
UPDATE schedules
SET version = i.version, wakes_at = i.wakes_at, body = i.body
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[])
    AS i(tenant, name, read_version, version, wakes_at, body)
WHERE schedules.tenant = i.tenant AND schedules.name = i.name AND schedules.version = i.read_version
