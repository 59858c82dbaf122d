-- Each is locked and has the version before.
UPDATE runs
SET version = i.version, state = i.state, wakes_at = i.wakes_at,
    ended_at = CASE WHEN i.state >= 4
        THEN COALESCE(i.ended_at, $1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) END,
    parent = i.parent, head = i.head
FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::bigint[])
    AS i(run_id, state, wakes_at, ended_at, parent, head, version)
WHERE runs.run_id = i.run_id AND runs.version = i.version - 1
