INSERT INTO runs (run_id, version, state, wakes_at, ended_at, parent, tenant, dag, head)
SELECT i.run_id, 1, i.state, i.wakes_at,
    CASE WHEN i.state >= 4
        THEN COALESCE(i.ended_at, $1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) END,
    i.parent, i.tenant, i.dag, i.head
FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::text[], $9::text[])
    AS i(run_id, state, wakes_at, ended_at, parent, head, tenant, dag)
ON CONFLICT (run_id) DO NOTHING
RETURNING run_id
