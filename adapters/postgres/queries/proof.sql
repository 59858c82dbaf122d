-- The Store's time, and which of the named pieces of evidence hold now. Each is proven once, however many changes name it.
WITH moment AS MATERIALIZED (
    SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now, $9::bigint AS shard
), proof AS MATERIALIZED (
    SELECT array_agg(
        CASE e.kind
            WHEN 0 THEN TRUE
            WHEN 1 THEN e.at <= (SELECT now FROM moment)
            WHEN 2 THEN s.epoch = e.epoch AND s.closed_at IS NULL
            WHEN 3 THEN s.epoch = e.epoch AND s.closed_at IS NULL
                AND e.policy = (SELECT id FROM in_force WHERE in_force.kind = 'policy')
                AND e.pools = (SELECT id FROM in_force WHERE in_force.kind = 'pools')
                AND e.states = (SELECT id FROM in_force WHERE in_force.kind = 'pool_states')
            WHEN 4 THEN e.pools = (SELECT id FROM in_force WHERE in_force.kind = 'pools')
                AND e.states = (SELECT id FROM in_force WHERE in_force.kind = 'pool_states')
            WHEN 5 THEN s.epoch = e.epoch AND s.closed_at IS NOT NULL
            WHEN 7 THEN e.policy = (SELECT id FROM in_force WHERE in_force.kind = 'policy')
            -- Of a job, by its version.
            ELSE EXISTS (SELECT 1 FROM jobs_hot AS p WHERE p.job_id = e.session AND p.version = e.epoch)
        END ORDER BY e.n) AS holds
    FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::bigint[]) WITH ORDINALITY
        AS e(kind, session, epoch, policy, pools, states, at, n)
    LEFT JOIN sessions AS s ON s.session = e.session
)
