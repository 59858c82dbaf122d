-- A slot keeps the place it had first.
INSERT INTO schedule_slots (tenant, schedule, series, nominal, place, outcome, decided_at, body)
SELECT i.tenant, i.schedule, i.series, i.nominal, i.place, i.outcome, i.decided_at, i.body
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[])
    AS i(tenant, schedule, series, nominal, place, outcome, decided_at, body)
ON CONFLICT (tenant, schedule, series, nominal) DO UPDATE
SET outcome = excluded.outcome, decided_at = excluded.decided_at, body = excluded.body
;;
-- An edge that never renews must still be found and closed one day.
WITH known AS (
    INSERT INTO edges (edge, expires_at)
    VALUES ($3, COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))
    ON CONFLICT (edge) DO NOTHING
)
INSERT INTO sessions (session, epoch, edge, closed_at, profile) VALUES ($2, 1, $3, NULL, $4)
ON CONFLICT (session) DO UPDATE
SET epoch = sessions.epoch + 1, edge = excluded.edge, closed_at = NULL, profile = excluded.profile
RETURNING epoch
;;
-- Counted in the index alone; what a lane is called follows from any job that waits in it.
SELECT sample.seq, sample.version, sample.state, sample.hash, sample.life, sample.request, counted.waiting
FROM (
    SELECT lane, count(*) AS waiting
    FROM jobs_hot
    WHERE state = 2 AND due_at <= (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))
    GROUP BY lane
) AS counted
CROSS JOIN LATERAL (
    SELECT seq, version, state, hash, life, request
    FROM jobs_hot
    WHERE jobs_hot.state = 2 AND jobs_hot.lane = counted.lane
    ORDER BY due_at, seq
    LIMIT 1
) AS sample
;;
-- Each is locked and has the version before.
UPDATE runs
SET version = i.version, state = i.state, wakes_at = i.wakes_at,
    ended_at = CASE WHEN i.state >= 4
        THEN COALESCE(i.ended_at, $1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) END,
    parent = i.parent, head = i.head
FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::bigint[])
    AS i(run_id, state, wakes_at, ended_at, parent, head, version)
WHERE runs.run_id = i.run_id AND runs.version = i.version - 1
;;
-- Each is locked and has the version that was read.
UPDATE schedules
SET version = i.version, wakes_at = i.wakes_at, body = i.body
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[])
    AS i(tenant, name, read_version, version, wakes_at, body)
WHERE schedules.tenant = i.tenant AND schedules.name = i.name AND schedules.version = i.read_version
;;
-- Every row looked at is named, so that the next page knows where to go on; only wanted ones are read in full.
SELECT seq, version, state, hash, life, CASE WHEN wanted THEN request END
FROM (
    SELECT seq, version, state, hash, life, request,
        ($4::text IS NULL OR tenant = $4) AND ($5::text IS NULL OR topic = $5) AND ($6::bigint IS NULL OR state = $6) AS wanted
    FROM (
        (SELECT seq, version, state, hash, life, request, tenant, topic
        FROM jobs_hot WHERE seq < $1 ORDER BY seq DESC LIMIT $3)
        UNION ALL
        (SELECT seq, version, state, hash, life, request, tenant, topic
        FROM jobs_done WHERE seq < $2 ORDER BY seq DESC LIMIT $3)
    ) AS both_tables
    ORDER BY seq DESC
    LIMIT $3
) AS looked_at
;;
-- Heads and nodes as one state: a head has a version, a node has a number.
SELECT run_id, head AS body, version, state, wakes_at, NULL::bigint AS node, NULL::bigint AS item
FROM runs WHERE run_id = ANY($1::text[])
UNION ALL
SELECT run_id, body, NULL, NULL, NULL, node, item
FROM run_nodes WHERE run_id = ANY($1::text[]) AND version > $2
;;
-- Locked in one order by everybody.
SELECT s.tenant, s.name, s.version
FROM unnest($1::text[], $2::text[]) AS i(tenant, name)
JOIN schedules AS s ON s.tenant = i.tenant AND s.name = i.name
ORDER BY s.tenant, s.name
FOR UPDATE OF s
;;
-- One at a time: the lock is held before this runs. The latest version as it is now, added or not.
WITH latest AS MATERIALIZED (
    SELECT tenant, name, version, snapshot, actor, at, pins, text
    FROM dags WHERE tenant = $2 AND name = $3 ORDER BY version DESC LIMIT 1
), added AS (
    INSERT INTO dags (tenant, name, version, snapshot, actor, at, pins, text)
    SELECT $2, $3, COALESCE((SELECT version FROM latest), 0) + 1, $4, $5,
        COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint), $6, $7
    WHERE NOT EXISTS (SELECT 1 FROM latest WHERE text = $7)
    RETURNING tenant, name, version, snapshot, actor, at, pins, text
), audited AS (
    INSERT INTO audit_inbox (at, tenant, actor, action, subject, detail)
    SELECT $8::bigint, $9::text, $10::text, $11::text, $12::text, $13::text FROM added
)
SELECT tenant, name, version, snapshot, actor, at, pins, text FROM added
UNION ALL
SELECT tenant, name, version, snapshot, actor, at, pins, text FROM latest WHERE text = $7
;;
-- One mover at a time: the row of the head is locked before this runs.
WITH moved AS (
    DELETE FROM audit_inbox
    WHERE inbox_id IN (SELECT inbox_id FROM audit_inbox ORDER BY inbox_id LIMIT $1)
    RETURNING inbox_id, at, tenant, actor, action, subject, detail
), numbered AS (
    INSERT INTO audit (audit_id, at, tenant, actor, action, subject, detail)
    SELECT (SELECT last_id FROM audit_head) + row_number() OVER (ORDER BY inbox_id), at, tenant, actor, action, subject,
        detail
    FROM moved
)
UPDATE audit_head SET last_id = last_id + (SELECT count(*) FROM moved)
;;
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
            ELSE s.epoch = e.epoch AND s.closed_at IS NOT NULL
        END ORDER BY e.n) AS holds
    FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::bigint[]) WITH ORDINALITY
        AS e(kind, session, epoch, policy, pools, states, at, n)
    LEFT JOIN sessions AS s ON s.session = e.session
)
, changed AS (
    UPDATE jobs_hot AS h
    SET version = i.version, state = i.state, lane = COALESCE(i.lane, h.lane), due_at = i.due_at,
        delayed = i.state = 2 AND i.due_at > (SELECT now FROM moment), deadline_at = i.deadline_at, session = i.session,
        life = i.life, events = h.events || i.events
    FROM unnest($10::bigint[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[],
        $16::bigint[], $17::text[], $18::text[], $19::text[], $20::text[])
        AS i(proof, job_id, version, state, lane, due_at, deadline_at, session, life, events, held)
    WHERE h.job_id = i.job_id AND h.version = i.version - 1
        AND (SELECT holds FROM proof)[i.proof]
    RETURNING h.job_id, h.seq, h.tenant, i.held
), kept AS (
    INSERT INTO held_results (job_id, body) SELECT job_id, held FROM changed WHERE held IS NOT NULL
    ON CONFLICT (job_id) DO UPDATE SET body = excluded.body
), weighed AS (
    SELECT tenant, 0::bigint AS live, 0::bigint AS ended, 0::bigint AS runs,
        (octet_length(held) - COALESCE(
            (SELECT octet_length(body) FROM held_results WHERE held_results.job_id = changed.job_id), 0))::bigint AS bytes
    FROM changed
    WHERE held IS NOT NULL
)
, tallied AS (
    INSERT INTO tallies (tenant, shard, live, ended, runs, stored_bytes)
    SELECT tenant, (SELECT shard FROM moment), sum(live)::bigint, sum(ended)::bigint, sum(runs)::bigint, sum(bytes)::bigint
    FROM weighed
    GROUP BY tenant
    ON CONFLICT (tenant, shard) DO UPDATE
    SET live = tallies.live + excluded.live, ended = tallies.ended + excluded.ended, runs = tallies.runs + excluded.runs,
        stored_bytes = tallies.stored_bytes + excluded.stored_bytes
)
SELECT job_id, seq FROM changed
;;
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
            ELSE s.epoch = e.epoch AND s.closed_at IS NOT NULL
        END ORDER BY e.n) AS holds
    FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::bigint[]) WITH ORDINALITY
        AS e(kind, session, epoch, policy, pools, states, at, n)
    LEFT JOIN sessions AS s ON s.session = e.session
)
, sign AS (SELECT -1::bigint AS live, 1::bigint AS ended)
, changed AS (
    DELETE FROM jobs_hot AS h
    USING unnest($10::bigint[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[], $15::text[],
        $16::text[], $17::text[], $18::boolean[])
        AS i(proof, job_id, version, state, ended_at, life, events, result, scanned)
    WHERE h.job_id = i.job_id AND h.version = i.version - 1
        AND (SELECT holds FROM proof)[i.proof]
    RETURNING h.job_id, h.seq, i.version, i.state, h.priority, i.ended_at, h.tenant, h.topic, h.hash, h.request, i.life,
        h.events || i.events AS events, h.payload, i.result, i.scanned
), ended AS (
    INSERT INTO jobs_done (job_id, seq, version, state, priority, ended_at, tenant, topic, hash, request, life, events,
        payload, result)
    SELECT job_id, seq, version, state, priority, COALESCE(ended_at, (SELECT now FROM moment)), tenant, topic, hash, request,
        life, events, payload,
        -- A result is held only while its scan is owed, so other ends need not look.
        CASE WHEN scanned AND result IS NULL
            THEN (SELECT body FROM held_results WHERE held_results.job_id = changed.job_id) ELSE result END
    FROM changed
), released AS (
    DELETE FROM held_results USING changed WHERE changed.scanned AND held_results.job_id = changed.job_id
)
, weighed AS (
    -- What was held counts already.
    SELECT changed.tenant, sign.live, sign.ended, 0::bigint AS runs,
        CASE WHEN NOT changed.scanned THEN COALESCE(octet_length(changed.result), 0)
            WHEN changed.result IS NULL THEN 0
            ELSE octet_length(changed.result) - COALESCE(
                (SELECT octet_length(body) FROM held_results WHERE held_results.job_id = changed.job_id), 0)
        END::bigint AS bytes
    FROM changed, sign
)
, tallied AS (
    INSERT INTO tallies (tenant, shard, live, ended, runs, stored_bytes)
    SELECT tenant, (SELECT shard FROM moment), sum(live)::bigint, sum(ended)::bigint, sum(runs)::bigint, sum(bytes)::bigint
    FROM weighed
    GROUP BY tenant
    ON CONFLICT (tenant, shard) DO UPDATE
    SET live = tallies.live + excluded.live, ended = tallies.ended + excluded.ended, runs = tallies.runs + excluded.runs,
        stored_bytes = tallies.stored_bytes + excluded.stored_bytes
)
, counted AS (
    UPDATE totals
    SET live_critical = totals.live_critical + sign.live * c.critical,
        live_high = totals.live_high + sign.live * c.high,
        live_default = totals.live_default + sign.live * c.usual,
        live_low = totals.live_low + sign.live * c.low,
        ended = totals.ended + sign.ended * c.jobs
    FROM sign, (
        SELECT count(*) FILTER (WHERE priority = 0) AS critical, count(*) FILTER (WHERE priority = 1) AS high,
            count(*) FILTER (WHERE priority = 2) AS usual, count(*) FILTER (WHERE priority = 3) AS low, count(*) AS jobs
        FROM changed
    ) AS c
    WHERE totals.shard = (SELECT shard FROM moment) AND c.jobs > 0
)
SELECT job_id, seq FROM changed
;;
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
            ELSE s.epoch = e.epoch AND s.closed_at IS NOT NULL
        END ORDER BY e.n) AS holds
    FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::bigint[]) WITH ORDINALITY
        AS e(kind, session, epoch, policy, pools, states, at, n)
    LEFT JOIN sessions AS s ON s.session = e.session
)
, sign AS (SELECT 1::bigint AS live, 0::bigint AS ended)
, changed AS (
    INSERT INTO jobs_hot (job_id, seq, version, state, priority, lane, due_at, delayed, deadline_at, tenant, topic, hash,
        request, life, events, payload)
    SELECT i.job_id, i.seq, 1, i.state, i.priority, i.lane, i.due_at, i.state = 2 AND i.due_at > (SELECT now FROM moment),
        i.deadline_at, i.tenant, i.topic, i.hash, i.request, i.life, i.events, i.payload
    FROM unnest($10::bigint[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[],
        $17::text[], $18::text[], $19::bytea[], $20::text[], $21::text[], $22::text[], $23::text[])
        AS i(seq, job_id, state, priority, lane, due_at, deadline_at, tenant, topic, hash, request, life, events, payload)
    RETURNING job_id, seq, priority, tenant, octet_length(payload)::bigint AS bytes
)
, weighed AS (
    SELECT changed.tenant, sign.live, sign.ended, 0::bigint AS runs, changed.bytes FROM changed, sign
)
, tallied AS (
    INSERT INTO tallies (tenant, shard, live, ended, runs, stored_bytes)
    SELECT tenant, (SELECT shard FROM moment), sum(live)::bigint, sum(ended)::bigint, sum(runs)::bigint, sum(bytes)::bigint
    FROM weighed
    GROUP BY tenant
    ON CONFLICT (tenant, shard) DO UPDATE
    SET live = tallies.live + excluded.live, ended = tallies.ended + excluded.ended, runs = tallies.runs + excluded.runs,
        stored_bytes = tallies.stored_bytes + excluded.stored_bytes
)
, counted AS (
    UPDATE totals
    SET live_critical = totals.live_critical + sign.live * c.critical,
        live_high = totals.live_high + sign.live * c.high,
        live_default = totals.live_default + sign.live * c.usual,
        live_low = totals.live_low + sign.live * c.low,
        ended = totals.ended + sign.ended * c.jobs
    FROM sign, (
        SELECT count(*) FILTER (WHERE priority = 0) AS critical, count(*) FILTER (WHERE priority = 1) AS high,
            count(*) FILTER (WHERE priority = 2) AS usual, count(*) FILTER (WHERE priority = 3) AS low, count(*) AS jobs
        FROM changed
    ) AS c
    WHERE totals.shard = (SELECT shard FROM moment) AND c.jobs > 0
)
SELECT job_id, seq FROM changed
;;
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
            ELSE s.epoch = e.epoch AND s.closed_at IS NOT NULL
        END ORDER BY e.n) AS holds
    FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::bigint[]) WITH ORDINALITY
        AS e(kind, session, epoch, policy, pools, states, at, n)
    LEFT JOIN sessions AS s ON s.session = e.session
)
, taken AS (
    INSERT INTO idempotency (tenant, key, job_id, free_at)
    SELECT i.tenant, i.key, i.job_id, (SELECT now FROM moment) + i.life
    FROM unnest($10::bigint[], $11::text[], $12::text[], $13::text[], $14::bigint[]) AS i(proof, tenant, key, job_id, life)
    WHERE (SELECT holds FROM proof)[i.proof]
    ON CONFLICT (tenant, key) DO UPDATE SET job_id = excluded.job_id, free_at = excluded.free_at
    WHERE idempotency.free_at <= (SELECT now FROM moment)
    RETURNING job_id
)
SELECT job_id FROM taken
;;
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
            ELSE s.epoch = e.epoch AND s.closed_at IS NOT NULL
        END ORDER BY e.n) AS holds
    FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::bigint[]) WITH ORDINALITY
        AS e(kind, session, epoch, policy, pools, states, at, n)
    LEFT JOIN sessions AS s ON s.session = e.session
)
-- A late scan, a release, or a replay that was denied at once.
, changed AS (
    UPDATE jobs_done AS d
    SET version = i.version, state = i.state, ended_at = COALESCE(i.ended_at, (SELECT now FROM moment)), life = i.life,
        events = d.events || i.events,
        -- A new life has no result of the one before.
        result = CASE WHEN (d.life::jsonb ->> 'n')::bigint = i.life_no THEN COALESCE(i.result, d.result) ELSE i.result END
    FROM unnest($10::bigint[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[], $15::text[], $16::text[],
        $17::text[], $18::bigint[])
        AS i(proof, job_id, version, state, ended_at, life, events, result, life_no)
    -- The row as it was: the same version is the same row.
    JOIN jobs_done AS before ON before.job_id = i.job_id AND before.version = i.version - 1
    WHERE d.job_id = i.job_id AND d.version = i.version - 1
        AND (SELECT holds FROM proof)[i.proof]
    RETURNING d.job_id, d.seq, d.tenant,
        (COALESCE(octet_length(d.result), 0) - COALESCE(octet_length(before.result), 0))::bigint AS bytes
), weighed AS (
    SELECT tenant, 0::bigint AS live, 0::bigint AS ended, 0::bigint AS runs, bytes FROM changed WHERE bytes <> 0
)
, tallied AS (
    INSERT INTO tallies (tenant, shard, live, ended, runs, stored_bytes)
    SELECT tenant, (SELECT shard FROM moment), sum(live)::bigint, sum(ended)::bigint, sum(runs)::bigint, sum(bytes)::bigint
    FROM weighed
    GROUP BY tenant
    ON CONFLICT (tenant, shard) DO UPDATE
    SET live = tallies.live + excluded.live, ended = tallies.ended + excluded.ended, runs = tallies.runs + excluded.runs,
        stored_bytes = tallies.stored_bytes + excluded.stored_bytes
)
SELECT job_id, seq FROM changed
;;
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
            ELSE s.epoch = e.epoch AND s.closed_at IS NOT NULL
        END ORDER BY e.n) AS holds
    FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::bigint[]) WITH ORDINALITY
        AS e(kind, session, epoch, policy, pools, states, at, n)
    LEFT JOIN sessions AS s ON s.session = e.session
)
-- A new life.
, sign AS (SELECT 1::bigint AS live, -1::bigint AS ended)
, changed AS (
    DELETE FROM jobs_done AS d
    USING unnest($10::bigint[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[],
        $16::bigint[], $17::text[], $18::text[])
        AS i(proof, job_id, version, state, lane, due_at, deadline_at, life, events)
    WHERE d.job_id = i.job_id AND d.version = i.version - 1
        AND (SELECT holds FROM proof)[i.proof]
    RETURNING d.job_id, d.seq, i.version, i.state, d.priority, i.lane, i.due_at, i.deadline_at, d.tenant, d.topic, d.hash,
        d.request, i.life, d.events || i.events AS events, d.payload,
        -COALESCE(octet_length(d.result), 0)::bigint AS bytes
), revived AS (
    INSERT INTO jobs_hot (job_id, seq, version, state, priority, lane, due_at, delayed, deadline_at, tenant, topic, hash,
        request, life, events, payload)
    SELECT job_id, seq, version, state, priority, lane, due_at, state = 2 AND due_at > (SELECT now FROM moment), deadline_at,
        tenant, topic, hash, request, life, events, payload
    FROM changed
)
, weighed AS (
    SELECT changed.tenant, sign.live, sign.ended, 0::bigint AS runs, changed.bytes FROM changed, sign
)
, tallied AS (
    INSERT INTO tallies (tenant, shard, live, ended, runs, stored_bytes)
    SELECT tenant, (SELECT shard FROM moment), sum(live)::bigint, sum(ended)::bigint, sum(runs)::bigint, sum(bytes)::bigint
    FROM weighed
    GROUP BY tenant
    ON CONFLICT (tenant, shard) DO UPDATE
    SET live = tallies.live + excluded.live, ended = tallies.ended + excluded.ended, runs = tallies.runs + excluded.runs,
        stored_bytes = tallies.stored_bytes + excluded.stored_bytes
)
, counted AS (
    UPDATE totals
    SET live_critical = totals.live_critical + sign.live * c.critical,
        live_high = totals.live_high + sign.live * c.high,
        live_default = totals.live_default + sign.live * c.usual,
        live_low = totals.live_low + sign.live * c.low,
        ended = totals.ended + sign.ended * c.jobs
    FROM sign, (
        SELECT count(*) FILTER (WHERE priority = 0) AS critical, count(*) FILTER (WHERE priority = 1) AS high,
            count(*) FILTER (WHERE priority = 2) AS usual, count(*) FILTER (WHERE priority = 3) AS low, count(*) AS jobs
        FROM changed
    ) AS c
    WHERE totals.shard = (SELECT shard FROM moment) AND c.jobs > 0
)
SELECT job_id, seq FROM changed
;;
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
            ELSE s.epoch = e.epoch AND s.closed_at IS NOT NULL
        END ORDER BY e.n) AS holds
    FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::bigint[]) WITH ORDINALITY
        AS e(kind, session, epoch, policy, pools, states, at, n)
    LEFT JOIN sessions AS s ON s.session = e.session
)
-- Denied at submit: history is all it has.
, sign AS (SELECT 0::bigint AS live, 1::bigint AS ended)
, changed AS (
    INSERT INTO jobs_done (job_id, seq, version, state, priority, ended_at, tenant, topic, hash, request, life, events,
        payload, result)
    SELECT i.job_id, i.seq, 1, i.state, i.priority, COALESCE(i.ended_at, (SELECT now FROM moment)), i.tenant, i.topic,
        i.hash, i.request, i.life, i.events, i.payload, i.result
    FROM unnest($10::bigint[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[], $15::text[], $16::text[],
        $17::bytea[], $18::text[], $19::text[], $20::text[], $21::text[], $22::text[])
        AS i(seq, job_id, state, priority, ended_at, tenant, topic, hash, request, life, events, payload, result)
    RETURNING job_id, seq, priority, tenant,
        (octet_length(payload) + COALESCE(octet_length(result), 0))::bigint AS bytes
)
, weighed AS (
    SELECT changed.tenant, sign.live, sign.ended, 0::bigint AS runs, changed.bytes FROM changed, sign
)
, tallied AS (
    INSERT INTO tallies (tenant, shard, live, ended, runs, stored_bytes)
    SELECT tenant, (SELECT shard FROM moment), sum(live)::bigint, sum(ended)::bigint, sum(runs)::bigint, sum(bytes)::bigint
    FROM weighed
    GROUP BY tenant
    ON CONFLICT (tenant, shard) DO UPDATE
    SET live = tallies.live + excluded.live, ended = tallies.ended + excluded.ended, runs = tallies.runs + excluded.runs,
        stored_bytes = tallies.stored_bytes + excluded.stored_bytes
)
, counted AS (
    UPDATE totals
    SET live_critical = totals.live_critical + sign.live * c.critical,
        live_high = totals.live_high + sign.live * c.high,
        live_default = totals.live_default + sign.live * c.usual,
        live_low = totals.live_low + sign.live * c.low,
        ended = totals.ended + sign.ended * c.jobs
    FROM sign, (
        SELECT count(*) FILTER (WHERE priority = 0) AS critical, count(*) FILTER (WHERE priority = 1) AS high,
            count(*) FILTER (WHERE priority = 2) AS usual, count(*) FILTER (WHERE priority = 3) AS low, count(*) AS jobs
        FROM changed
    ) AS c
    WHERE totals.shard = (SELECT shard FROM moment) AND c.jobs > 0
)
SELECT job_id, seq FROM changed
;;
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
            ELSE s.epoch = e.epoch AND s.closed_at IS NOT NULL
        END ORDER BY e.n) AS holds
    FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::bigint[]) WITH ORDINALITY
        AS e(kind, session, epoch, policy, pools, states, at, n)
    LEFT JOIN sessions AS s ON s.session = e.session
)
-- Numbers are given in the order of the changes, to those whose id is free.
, registered AS (
    INSERT INTO job_ids (job_id)
    SELECT i.job_id
    FROM unnest($10::bigint[], $11::text[]) AS i(proof, job_id)
    WHERE (SELECT holds FROM proof)[i.proof]
        AND NOT EXISTS (SELECT 1 FROM jobs_hot WHERE jobs_hot.job_id = i.job_id)
        AND NOT EXISTS (SELECT 1 FROM jobs_done WHERE jobs_done.job_id = i.job_id)
    ON CONFLICT (job_id) DO NOTHING
    RETURNING job_id, nextval('job_seq') AS seq
)
SELECT job_id, seq FROM registered
;;
-- The schedules first, so that no more slots come.
WITH gone AS (
    DELETE FROM schedules WHERE tenant = $1
), page AS MATERIALIZED (
    SELECT schedule, series, nominal FROM schedule_slots WHERE tenant = $1 ORDER BY schedule, series, nominal LIMIT $2
)
DELETE FROM schedule_slots AS s USING page
WHERE s.tenant = $1 AND s.schedule = page.schedule AND s.series = page.series AND s.nominal = page.nominal
;;
-- They were found before: each is looked at again.
WITH moment AS MATERIALIZED (
    SELECT $3::bigint AS shard
), old AS MATERIALIZED (
    SELECT job_id, version
    FROM jobs_done
    WHERE job_id = ANY($1::text[]) AND tenant = $2
        AND NOT EXISTS (
            SELECT 1 FROM run_jobs JOIN runs ON runs.run_id = run_jobs.run_id AND runs.state < 4
            WHERE run_jobs.job_id = jobs_done.job_id
        )
)
-- Ended jobs, if they are as they were found, with all that belongs to them.
, gone AS (
    DELETE FROM jobs_done USING old WHERE jobs_done.job_id = old.job_id AND jobs_done.version = old.version
    RETURNING jobs_done.job_id, jobs_done.tenant,
        (octet_length(jobs_done.payload) + COALESCE(octet_length(jobs_done.result), 0))::bigint AS bytes
), ids AS (
    DELETE FROM job_ids USING gone WHERE job_ids.job_id = gone.job_id
), logs AS (
    DELETE FROM job_logs USING gone WHERE job_logs.job_id = gone.job_id
), keys AS (
    DELETE FROM idempotency USING gone WHERE idempotency.job_id = gone.job_id
), owed AS (
    DELETE FROM duties USING gone WHERE duties.job_id = gone.job_id
), parts AS (
    DELETE FROM run_jobs USING gone WHERE run_jobs.job_id = gone.job_id
), letters AS (
    DELETE FROM dead_letters USING gone WHERE dead_letters.job_id = gone.job_id RETURNING dead_letters.priority
), counted AS (
    UPDATE totals
    SET dead_critical = totals.dead_critical - c.critical, dead_high = totals.dead_high - c.high,
        dead_default = totals.dead_default - c.usual, dead_low = totals.dead_low - c.low,
        ended = totals.ended - (SELECT count(*) FROM gone)
    FROM (
        SELECT count(*) FILTER (WHERE priority = 0) AS critical, count(*) FILTER (WHERE priority = 1) AS high,
            count(*) FILTER (WHERE priority = 2) AS usual, count(*) FILTER (WHERE priority = 3) AS low
        FROM letters
    ) AS c
    WHERE totals.shard = (SELECT shard FROM moment) AND EXISTS (SELECT 1 FROM gone)
), weighed AS (
    SELECT tenant, 0::bigint AS live, -1::bigint AS ended, 0::bigint AS runs, -bytes AS bytes FROM gone
)
, untold AS (
    DELETE FROM outbox USING gone WHERE outbox.job_id = gone.job_id
)
, tallied AS (
    INSERT INTO tallies (tenant, shard, live, ended, runs, stored_bytes)
    SELECT tenant, (SELECT shard FROM moment), sum(live)::bigint, sum(ended)::bigint, sum(runs)::bigint, sum(bytes)::bigint
    FROM weighed
    GROUP BY tenant
    ON CONFLICT (tenant, shard) DO UPDATE
    SET live = tallies.live + excluded.live, ended = tallies.ended + excluded.ended, runs = tallies.runs + excluded.runs,
        stored_bytes = tallies.stored_bytes + excluded.stored_bytes
)
SELECT count(*) FROM gone
;;
-- Told late, by the last jobs of a run that is gone.
DELETE FROM run_news
WHERE at < (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)) - $2
    AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.run_id = run_news.run_id)
;;
-- Waits for every open transaction that commits changes, and makes those that waited meanwhile look again.
UPDATE totals SET fences = fences + 1
;;
DELETE FROM duties
USING unnest($1::text[], $2::bigint[]) AS i(kind, seq)
WHERE duties.kind = i.kind AND duties.seq = i.seq
;;
DELETE FROM edges
WHERE closed_at <= (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)) - $2
    AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.edge = edges.edge)
;;
DELETE FROM idempotency
WHERE free_at <= (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))
;;
DELETE FROM idempotency USING unnest($1::text[], $2::text[]) AS i(tenant, key)
    WHERE idempotency.tenant = i.tenant AND idempotency.key = i.key
;;
DELETE FROM job_ids WHERE job_id = ANY($1::text[])
;;
DELETE FROM job_logs
USING (
    SELECT i.job_id, kept.log_id
    FROM unnest($1::text[]) AS i(job_id)
    CROSS JOIN LATERAL (
        SELECT log_id FROM job_logs WHERE job_logs.job_id = i.job_id ORDER BY log_id DESC OFFSET $2 LIMIT 1
    ) AS kept
) AS old
WHERE job_logs.job_id = old.job_id AND job_logs.log_id <= old.log_id
;;
DELETE FROM outbox WHERE outbox_id = ANY($1::bigint[])
;;
DELETE FROM run_keys
WHERE free_at <= (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))
;;
DELETE FROM run_keys USING unnest($1::text[], $2::text[]) AS i(tenant, key)
    WHERE run_keys.tenant = i.tenant AND run_keys.key = i.key
;;
DELETE FROM run_news
USING unnest($1::bigint[], $2::text[]) AS i(news_no, run_id)
WHERE run_news.news_no = i.news_no AND run_news.run_id = i.run_id
;;
DELETE FROM runs WHERE run_id = ANY($1::text[])
;;
DELETE FROM schedules USING unnest($1::text[], $2::text[]) AS i(tenant, name)
WHERE schedules.tenant = i.tenant AND schedules.name = i.name
;;
DELETE FROM sessions
WHERE closed_at <= (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)) - $2
    AND NOT EXISTS (SELECT 1 FROM jobs_hot WHERE jobs_hot.session = sessions.session)
;;
INSERT INTO audit_blocks (block_no, first_id, last_id, row_count, previous, seal, sealed_at)
SELECT $1::bigint, $2::bigint, $3::bigint, $4::bigint, $5::bytea, $6::bytea, $7::bigint
WHERE $1 = (SELECT COALESCE(max(block_no), 0) + 1 FROM audit_blocks)
    AND ($1 = 1 AND $5 = $8::bytea OR $5 = (SELECT seal FROM audit_blocks WHERE block_no = $1 - 1))
ON CONFLICT (block_no) DO NOTHING
RETURNING block_no
;;
INSERT INTO audit_inbox (at, tenant, actor, action, subject, detail)
SELECT i.at, i.tenant, i.actor, i.action, i.subject, i.detail
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
    AS i(at, tenant, actor, action, subject, detail)
;;
INSERT INTO duties (kind, seq, job_id)
SELECT i.kind, i.seq, i.job_id FROM unnest($1::text[], $2::bigint[], $3::text[]) AS i(kind, seq, job_id)
ON CONFLICT (kind, seq) DO NOTHING
;;
INSERT INTO edges (edge, expires_at)
VALUES ($2, COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) + $3)
ON CONFLICT (edge) DO UPDATE SET expires_at = excluded.expires_at WHERE edges.closed_at IS NULL
RETURNING edge
;;
INSERT INTO job_logs (job_id, attempt, at, line)
SELECT i.job_id, i.attempt, i.at, i.line
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[]) AS i(job_id, attempt, at, line)
WHERE EXISTS (SELECT 1 FROM jobs_hot WHERE jobs_hot.job_id = i.job_id)
    OR EXISTS (SELECT 1 FROM jobs_done WHERE jobs_done.job_id = i.job_id)
;;
INSERT INTO leases (name, holder, epoch, expires_at)
VALUES ($2, $3, 1, COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) + $4)
ON CONFLICT (name) DO UPDATE
SET holder = excluded.holder, expires_at = excluded.expires_at,
    epoch = leases.epoch + CASE WHEN leases.holder IS NOT DISTINCT FROM excluded.holder THEN 0 ELSE 1 END
WHERE leases.holder IS NULL OR leases.holder = excluded.holder
    OR leases.expires_at <= COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
RETURNING epoch
;;
INSERT INTO outbox (job_id, sink, body)
SELECT i.job_id, i.sink, i.body FROM unnest($1::text[], $2::text[], $3::text[]) AS i(job_id, sink, body)
;;
INSERT INTO run_jobs (job_id, run_id) SELECT i.job_id, i.run_id FROM unnest($1::text[], $2::text[]) AS i(job_id, run_id)
;;
INSERT INTO run_news (run_id, at, job_id, seq, child)
SELECT i.run_id, COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint), i.job_id,
    i.seq, i.child
FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[]) AS i(run_id, job_id, seq, child)
;;
INSERT INTO run_nodes (run_id, node, item, version, body)
SELECT i.run_id, i.node, i.item, i.version, i.body
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[]) AS i(run_id, node, item, version, body)
ON CONFLICT (run_id, node, item) DO UPDATE SET version = excluded.version, body = excluded.body
;;
INSERT INTO runs (run_id, version, state, wakes_at, ended_at, parent, tenant, dag, head)
SELECT i.run_id, 1, i.state, i.wakes_at,
    CASE WHEN i.state >= 4
        THEN COALESCE(i.ended_at, $1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) END,
    i.parent, i.tenant, i.dag, i.head
FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::text[], $9::text[])
    AS i(run_id, state, wakes_at, ended_at, parent, head, tenant, dag)
ON CONFLICT (run_id) DO NOTHING
RETURNING run_id
;;
INSERT INTO schedules (tenant, name, version, wakes_at, body)
SELECT i.tenant, i.name, 1, i.wakes_at, i.body
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[]) AS i(tenant, name, wakes_at, body)
ON CONFLICT (tenant, name) DO NOTHING
RETURNING tenant, name
;;
SELECT (SELECT wakes_at FROM schedules WHERE wakes_at IS NOT NULL ORDER BY wakes_at LIMIT 1),
    COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
;;
SELECT 1 FROM audit_inbox ORDER BY inbox_id LIMIT 1
;;
SELECT 1 FROM runs WHERE tenant = $1 AND state >= 4 ORDER BY run_no LIMIT 1
;;
SELECT 1 FROM schedule_slots WHERE tenant = $1 ORDER BY schedule, series, nominal LIMIT 1 OFFSET $2
;;
SELECT 1 FROM sessions WHERE session = ANY($1::text[]) ORDER BY session FOR SHARE
;;
SELECT a.version, a.id, a.actor, a.at
FROM (SELECT max(version) AS latest FROM activations WHERE kind = $1 GROUP BY id ORDER BY latest DESC LIMIT $2) AS last
JOIN activations AS a ON a.kind = $1 AND a.version = last.latest
ORDER BY a.version DESC
;;
SELECT a.version, a.id, a.actor, a.at, s.text
FROM activations AS a
JOIN snapshots AS s ON s.kind = a.kind AND s.id = a.id
WHERE a.kind = $1
ORDER BY a.version DESC
LIMIT 1
;;
SELECT attempt, at, line FROM job_logs WHERE job_id = $1 ORDER BY log_id DESC LIMIT $2
;;
SELECT audit_id, at, tenant, actor, action, subject, detail FROM audit
    WHERE audit_id > $1 ORDER BY audit_id LIMIT $2
;;
SELECT block_no, first_id, last_id, row_count, previous, seal, sealed_at FROM audit_blocks
    ORDER BY block_no DESC LIMIT 1
;;
SELECT block_no, first_id, last_id, row_count, previous, seal, sealed_at FROM audit_blocks
    WHERE block_no > $1 ORDER BY block_no LIMIT $2
;;
SELECT d.tenant, d.name, d.version, d.snapshot, d.actor, d.at, d.pins, d.text
FROM (
    SELECT name, max(version) AS latest FROM dags WHERE tenant = $1 AND name > $2 GROUP BY name ORDER BY name LIMIT $3
) AS last
JOIN dags AS d ON d.tenant = $1 AND d.name = last.name AND d.version = last.latest
ORDER BY d.name
;;
SELECT ends_at, body FROM credentials WHERE id = $1
;;
SELECT ends_at, body FROM credentials WHERE id > $1 ORDER BY id LIMIT $2
;;
SELECT guard FROM totals WHERE shard = $1
;;
SELECT i.session, h.job_id
FROM unnest($1::text[]) WITH ORDINALITY AS i(session, n)
CROSS JOIN LATERAL (
    SELECT job_id, seq FROM jobs_hot WHERE jobs_hot.session = i.session ORDER BY seq
) AS h
ORDER BY i.n, h.seq
;;
SELECT j.seq, j.version, j.state, j.hash, j.life, j.request, j.payload
FROM (SELECT seq, job_id FROM duties WHERE kind = $1 AND seq > $2 ORDER BY seq LIMIT $3) AS d
CROSS JOIN LATERAL (
    -- Whoever owes a scan may have ended.
    SELECT seq, version, state, hash, life, request, payload FROM jobs_hot WHERE jobs_hot.job_id = d.job_id
    UNION ALL
    SELECT seq, version, state, hash, life, request, payload FROM jobs_done WHERE jobs_done.job_id = d.job_id
) AS j
ORDER BY d.seq
;;
SELECT job_id FROM jobs_hot WHERE job_id = ANY($1::text[])
UNION ALL
SELECT job_id FROM jobs_done WHERE job_id = ANY($1::text[])
;;
SELECT job_id, seq
FROM jobs_done
WHERE seq > $2 AND seq <= $3 AND tenant = $1
    AND NOT EXISTS (
        SELECT 1 FROM run_jobs JOIN runs ON runs.run_id = run_jobs.run_id AND runs.state < 4
        WHERE run_jobs.job_id = jobs_done.job_id
    )
ORDER BY seq
LIMIT $4
;;
SELECT job_id, tenant, hash, state FROM jobs_hot WHERE job_id = ANY($1::text[])
UNION ALL
SELECT job_id, tenant, hash, state FROM jobs_done WHERE job_id = ANY($1::text[])
;;
SELECT k.tenant, k.key, k.job_id
FROM unnest($1::text[], $2::text[]) AS i(tenant, key)
JOIN idempotency AS k ON k.tenant = i.tenant AND k.key = i.key
;;
SELECT k.tenant, k.key, k.run_id, k.hash
FROM unnest($1::text[], $2::text[]) AS i(tenant, key)
JOIN run_keys AS k ON k.tenant = i.tenant AND k.key = i.key
;;
SELECT letter_id, CASE WHEN wanted THEN letter END
FROM (
    SELECT letter_id, letter,
        ($3::text IS NULL OR tenant = $3) AND ($4::text IS NULL OR topic = $4) AND ($5::bigint IS NULL OR priority = $5)
            AND ($6::text IS NULL OR reason = $6) AS wanted
    FROM dead_letters
    WHERE letter_id < $1
    ORDER BY letter_id DESC
    LIMIT $2
) AS looked_at
;;
SELECT max(seq) FROM (SELECT seq FROM jobs_done WHERE seq > $1 ORDER BY seq LIMIT $2) AS looked_at
;;
SELECT name, holder, epoch,
    expires_at - COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
FROM leases
;;
SELECT nextval('job_seq') FROM generate_series(1, $1::bigint)
;;
SELECT nextval('writer_seq')
;;
SELECT outbox_id, job_id, sink, body FROM outbox ORDER BY outbox_id LIMIT $1
;;
SELECT place, body FROM schedule_slots WHERE tenant = $1 AND schedule = $2 AND place < $3 ORDER BY place DESC LIMIT $4
;;
SELECT run_id
FROM (
    SELECT run_id, row_number() OVER (ORDER BY at, news_no) AS place
    FROM (
        SELECT run_id, at, news_no
        FROM run_news
        WHERE at <= (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)) - $2
            AND EXISTS (SELECT 1 FROM runs WHERE runs.run_id = run_news.run_id)
        ORDER BY at, news_no
        LIMIT $3
    ) AS oldest
) AS placed
GROUP BY run_id
ORDER BY min(place)
LIMIT $4
;;
SELECT run_id
FROM runs
WHERE state < 4 AND wakes_at IS NOT NULL
    AND wakes_at <= (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))
ORDER BY wakes_at, run_id
LIMIT $2
;;
SELECT run_id FROM runs WHERE state < 4 AND run_id > $1 ORDER BY run_id LIMIT $2
;;
SELECT run_id, version, state >= 4 FROM runs WHERE run_id = ANY($1::text[]) ORDER BY run_id FOR UPDATE
;;
SELECT run_no, CASE WHEN wanted THEN head END, version, state, wakes_at
FROM (
    SELECT run_no, head, version, state, wakes_at,
        ($3::text IS NULL OR tenant = $3) AND ($4::text IS NULL OR dag = $4) AND ($5::bigint IS NULL OR state = $5) AS wanted
    FROM runs
    WHERE run_no < $1
    ORDER BY run_no DESC
    LIMIT $2
) AS looked_at
;;
SELECT s.session, s.epoch, s.edge, e.closed_at IS NOT NULL, s.profile
FROM sessions AS s
LEFT JOIN edges AS e ON e.edge = s.edge
WHERE s.closed_at IS NOT NULL
    AND EXISTS (SELECT 1 FROM jobs_hot WHERE jobs_hot.session = s.session)
;;
SELECT s.session, s.epoch, s.edge, e.closed_at IS NOT NULL, s.profile
FROM sessions AS s
LEFT JOIN edges AS e ON e.edge = s.edge
WHERE s.closed_at IS NULL
;;
SELECT s.tenant, s.name, s.version, s.wakes_at, s.body
FROM unnest($1::text[], $2::text[]) AS i(tenant, name)
JOIN schedules AS s ON s.tenant = i.tenant AND s.name = i.name
;;
SELECT s.tenant, s.schedule, s.series, s.nominal, s.place
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS i(tenant, schedule, first_place, last_place)
JOIN schedule_slots AS s
    ON s.tenant = i.tenant AND s.schedule = i.schedule AND s.place BETWEEN i.first_place AND i.last_place
;;
SELECT seq, version, state, hash, life, request, payload
FROM jobs_hot
WHERE deadline_at IS NOT NULL
    AND deadline_at <= (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))
ORDER BY deadline_at, seq
LIMIT $2
;;
SELECT seq, version, state, hash, life, request, payload
FROM jobs_hot
WHERE session = $1
ORDER BY seq
;;
SELECT seq, version, state, hash, life, request, payload
FROM jobs_hot
WHERE state = 0 AND (due_at, seq) > ($2, $3)
    AND due_at <= (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))
ORDER BY due_at, seq
LIMIT $4
;;
SELECT seq, version, state, hash, life, request, payload
FROM jobs_hot
WHERE state = 2 AND delayed AND (due_at, seq) > ($2, $3)
    AND due_at <= (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))
ORDER BY due_at, seq
LIMIT $4
;;
SELECT seq, version, state, hash, life, request, payload
FROM jobs_hot
WHERE state = 2 AND lane = $2 AND (due_at, seq) > ($3, $4)
    AND due_at <= (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))
ORDER BY due_at, seq
LIMIT $5
;;
SELECT seq, version, state, hash, life, request, payload, events,
    (SELECT body FROM held_results WHERE held_results.job_id = jobs_hot.job_id) AS result
FROM jobs_hot WHERE job_id = $1
UNION ALL
SELECT seq, version, state, hash, life, request, payload, events, result FROM jobs_done WHERE job_id = $1
;;
SELECT seq, version, state, hash, life, request, payload, job_id FROM jobs_hot WHERE job_id = ANY($1::text[])
UNION ALL
SELECT seq, version, state, hash, life, request, payload, job_id FROM jobs_done WHERE job_id = ANY($1::text[])
;;
SELECT state, events FROM jobs_hot WHERE job_id = $1
UNION ALL
SELECT state, events FROM jobs_done WHERE job_id = $1
;;
SELECT sum(live_critical)::bigint, sum(live_high)::bigint, sum(live_default)::bigint, sum(live_low)::bigint,
    sum(dead_critical)::bigint, sum(dead_high)::bigint, sum(dead_default)::bigint, sum(dead_low)::bigint, sum(ended)::bigint
FROM totals
;;
SELECT tenant, name, version, snapshot, actor, at, pins, text
FROM dags
WHERE tenant = $1 AND name = $2 AND version <= $3
ORDER BY version DESC
LIMIT 1
;;
SELECT tenant, name, version, wakes_at, body
FROM schedules
WHERE wakes_at IS NOT NULL
    AND wakes_at <= (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))
ORDER BY wakes_at, tenant, name
LIMIT $2
;;
SELECT tenant, name, version, wakes_at, body FROM schedules WHERE tenant = $1 AND name > $2 ORDER BY name LIMIT $3
;;
SELECT tenant, sum(live)::bigint, sum(ended)::bigint, sum(runs)::bigint, sum(stored_bytes)::bigint
FROM tallies
WHERE tenant = ANY($1::text[])
GROUP BY tenant
;;
SELECT tenant, sum(live)::bigint, sum(ended)::bigint, sum(runs)::bigint, sum(stored_bytes)::bigint
FROM tallies
WHERE tenant > $1
GROUP BY tenant
HAVING sum(live) <> 0 OR sum(ended) <> 0 OR sum(runs) <> 0 OR sum(stored_bytes) <> 0
ORDER BY tenant
LIMIT $2
;;
SELECT text FROM snapshots WHERE kind = $1 AND id = $2
;;
SELECT told.seq, told.version, told.state, told.hash, told.life, told.request, told.result, told.news_no, told.run_id,
    told.head, told.child_version, told.child_state, told.child_wakes_at
FROM unnest($1::text[]) AS i(run_id)
CROSS JOIN LATERAL (
    SELECT n.news_no, n.run_id, j.seq, j.version, j.state, j.hash, j.life, j.request, j.result, c.head,
        c.version AS child_version, c.state AS child_state, c.wakes_at AS child_wakes_at
    FROM run_news AS n
    LEFT JOIN LATERAL (
        SELECT seq, version, state, hash, life, request, result FROM jobs_done WHERE jobs_done.job_id = n.job_id
        UNION ALL
        SELECT seq, version, state, hash, life, request, NULL FROM jobs_hot WHERE jobs_hot.job_id = n.job_id
    ) AS j ON j.seq = n.seq
    LEFT JOIN runs AS c ON c.run_id = n.child
    WHERE n.run_id = i.run_id AND (j.seq IS NOT NULL OR c.head IS NOT NULL)
    ORDER BY n.news_no
    LIMIT $2
) AS told
ORDER BY told.news_no
LIMIT $2
;;
SELECT version FROM in_force WHERE kind = $1
;;
UPDATE leases SET holder = NULL WHERE name = $1 AND holder = $2
;;
UPDATE pulse SET beats = beats + 1 RETURNING beats
;;
UPDATE sessions SET closed_at = COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
WHERE session = $2 AND epoch = $3 AND closed_at IS NULL
RETURNING epoch
;;
WITH added AS (
    INSERT INTO credentials (id, ends_at, body) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING RETURNING id
), audited AS (
    INSERT INTO audit_inbox (at, tenant, actor, action, subject, detail)
    SELECT $4::bigint, $5::text, $6::text, $7::text, $8::text, $9::text FROM added
)
SELECT id FROM added
;;
WITH bound AS MATERIALIZED (
    SELECT $2::bigint AS most
), old AS MATERIALIZED (
    SELECT r.run_id, r.version, r.ended_at
    FROM runs AS r
    WHERE r.tenant = $1 AND r.state >= 4
        AND NOT EXISTS (SELECT 1 FROM runs AS around WHERE around.run_id = r.parent AND around.state < 4)
    ORDER BY r.run_no
    LIMIT $2
)
-- Whole runs, oldest end first, until they and their nodes are as many rows as asked for.
, sized AS (
    SELECT run_id, version, ended_at,
        1 + (SELECT count(*) FROM run_nodes WHERE run_nodes.run_id = old.run_id) AS row_count
    FROM old
), placed AS (
    SELECT run_id, version, row_count, sum(row_count) OVER (ORDER BY ended_at, run_id) - row_count AS rows_before
    FROM sized
), gone AS (
    DELETE FROM runs USING placed
    WHERE placed.rows_before < (SELECT most FROM bound) AND runs.run_id = placed.run_id AND runs.version = placed.version
    RETURNING runs.run_id, placed.row_count
), nodes AS (
    DELETE FROM run_nodes USING gone WHERE run_nodes.run_id = gone.run_id
), news AS (
    DELETE FROM run_news USING gone WHERE run_news.run_id = gone.run_id
), keys AS (
    DELETE FROM run_keys USING gone WHERE run_keys.run_id = gone.run_id
)
SELECT count(*), COALESCE(sum(row_count), 0)::bigint FROM gone
;;
WITH bound AS MATERIALIZED (
    SELECT $3::bigint AS most
), old AS MATERIALIZED (
    SELECT r.run_id, r.version, r.ended_at
    FROM runs AS r
    WHERE r.ended_at < (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)) - $2
        AND NOT EXISTS (SELECT 1 FROM runs AS around WHERE around.run_id = r.parent AND around.state < 4)
    ORDER BY r.ended_at, r.run_id
    LIMIT $3
)
-- Whole runs, oldest end first, until they and their nodes are as many rows as asked for.
, sized AS (
    SELECT run_id, version, ended_at,
        1 + (SELECT count(*) FROM run_nodes WHERE run_nodes.run_id = old.run_id) AS row_count
    FROM old
), placed AS (
    SELECT run_id, version, row_count, sum(row_count) OVER (ORDER BY ended_at, run_id) - row_count AS rows_before
    FROM sized
), gone AS (
    DELETE FROM runs USING placed
    WHERE placed.rows_before < (SELECT most FROM bound) AND runs.run_id = placed.run_id AND runs.version = placed.version
    RETURNING runs.run_id, placed.row_count
), nodes AS (
    DELETE FROM run_nodes USING gone WHERE run_nodes.run_id = gone.run_id
), news AS (
    DELETE FROM run_news USING gone WHERE run_news.run_id = gone.run_id
), keys AS (
    DELETE FROM run_keys USING gone WHERE run_keys.run_id = gone.run_id
)
SELECT count(*), COALESCE(sum(row_count), 0)::bigint FROM gone
;;
WITH changed AS (
    INSERT INTO dead_letters (job_id, tenant, topic, priority, reason, letter)
    SELECT i.job_id, i.tenant, i.topic, i.priority, i.reason, i.letter
    FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[])
        AS i(job_id, tenant, topic, priority, reason, letter)
    RETURNING priority
)
UPDATE totals
SET dead_critical = totals.dead_critical + c.critical, dead_high = totals.dead_high + c.high,
    dead_default = totals.dead_default + c.usual, dead_low = totals.dead_low + c.low
FROM (
    SELECT count(*) FILTER (WHERE priority = 0) AS critical, count(*) FILTER (WHERE priority = 1) AS high,
        count(*) FILTER (WHERE priority = 2) AS usual, count(*) FILTER (WHERE priority = 3) AS low
    FROM changed
) AS c
WHERE totals.shard = $1
;;
WITH changed AS (DELETE FROM dead_letters WHERE job_id = ANY($1::text[]) RETURNING priority)
UPDATE totals
SET dead_critical = totals.dead_critical - c.critical, dead_high = totals.dead_high - c.high,
    dead_default = totals.dead_default - c.usual, dead_low = totals.dead_low - c.low
FROM (
    SELECT count(*) FILTER (WHERE priority = 0) AS critical, count(*) FILTER (WHERE priority = 1) AS high,
        count(*) FILTER (WHERE priority = 2) AS usual, count(*) FILTER (WHERE priority = 3) AS low, count(*) AS letters
    FROM changed
) AS c
WHERE totals.shard = $2 AND c.letters > 0
;;
WITH crons AS (
    DELETE FROM schedules WHERE tenant = $1 RETURNING name
), slots AS (
    DELETE FROM schedule_slots WHERE tenant = $1 RETURNING nominal
), definitions AS (
    DELETE FROM dags WHERE tenant = $1 RETURNING name
), keys AS (
    DELETE FROM idempotency WHERE tenant = $1 RETURNING key
), start_keys AS (
    DELETE FROM run_keys WHERE tenant = $1 RETURNING key
), counts AS (
    DELETE FROM tallies WHERE tenant = $1 RETURNING shard
)
SELECT (SELECT count(*) FROM crons) + (SELECT count(*) FROM slots) + (SELECT count(*) FROM definitions)
    + (SELECT count(*) FROM keys) + (SELECT count(*) FROM start_keys) + (SELECT count(*) FROM counts)
;;
WITH ended AS (
    UPDATE credentials SET ends_at = LEAST(COALESCE(ends_at, $2), $2) WHERE id = $1 RETURNING ends_at, body
), audited AS (
    INSERT INTO audit_inbox (at, tenant, actor, action, subject, detail)
    SELECT $3::bigint, $4::text, $5::text, $6::text, $7::text, $8::text FROM ended
)
SELECT ends_at, body FROM ended
;;
WITH moment AS MATERIALIZED (
    SELECT $1::bigint AS shard
), weighed AS (
    SELECT i.tenant, 0::bigint AS live, 0::bigint AS ended, i.runs, 0::bigint AS bytes
    FROM unnest($2::text[], $3::bigint[]) AS i(tenant, runs)
)
, tallied AS (
    INSERT INTO tallies (tenant, shard, live, ended, runs, stored_bytes)
    SELECT tenant, (SELECT shard FROM moment), sum(live)::bigint, sum(ended)::bigint, sum(runs)::bigint, sum(bytes)::bigint
    FROM weighed
    GROUP BY tenant
    ON CONFLICT (tenant, shard) DO UPDATE
    SET live = tallies.live + excluded.live, ended = tallies.ended + excluded.ended, runs = tallies.runs + excluded.runs,
        stored_bytes = tallies.stored_bytes + excluded.stored_bytes
)
SELECT count(*) FROM weighed
;;
WITH moment AS MATERIALIZED (
    SELECT $4::bigint AS shard
), old AS MATERIALIZED (
    SELECT job_id, version
    FROM jobs_done
    WHERE ended_at < (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)) - $2
        AND NOT EXISTS (
            SELECT 1 FROM run_jobs JOIN runs ON runs.run_id = run_jobs.run_id AND runs.state < 4
            WHERE run_jobs.job_id = jobs_done.job_id
        )
    ORDER BY ended_at, seq
    LIMIT $3
)
-- Ended jobs, if they are as they were found, with all that belongs to them.
, gone AS (
    DELETE FROM jobs_done USING old WHERE jobs_done.job_id = old.job_id AND jobs_done.version = old.version
    RETURNING jobs_done.job_id, jobs_done.tenant,
        (octet_length(jobs_done.payload) + COALESCE(octet_length(jobs_done.result), 0))::bigint AS bytes
), ids AS (
    DELETE FROM job_ids USING gone WHERE job_ids.job_id = gone.job_id
), logs AS (
    DELETE FROM job_logs USING gone WHERE job_logs.job_id = gone.job_id
), keys AS (
    DELETE FROM idempotency USING gone WHERE idempotency.job_id = gone.job_id
), owed AS (
    DELETE FROM duties USING gone WHERE duties.job_id = gone.job_id
), parts AS (
    DELETE FROM run_jobs USING gone WHERE run_jobs.job_id = gone.job_id
), letters AS (
    DELETE FROM dead_letters USING gone WHERE dead_letters.job_id = gone.job_id RETURNING dead_letters.priority
), counted AS (
    UPDATE totals
    SET dead_critical = totals.dead_critical - c.critical, dead_high = totals.dead_high - c.high,
        dead_default = totals.dead_default - c.usual, dead_low = totals.dead_low - c.low,
        ended = totals.ended - (SELECT count(*) FROM gone)
    FROM (
        SELECT count(*) FILTER (WHERE priority = 0) AS critical, count(*) FILTER (WHERE priority = 1) AS high,
            count(*) FILTER (WHERE priority = 2) AS usual, count(*) FILTER (WHERE priority = 3) AS low
        FROM letters
    ) AS c
    WHERE totals.shard = (SELECT shard FROM moment) AND EXISTS (SELECT 1 FROM gone)
), weighed AS (
    SELECT tenant, 0::bigint AS live, -1::bigint AS ended, 0::bigint AS runs, -bytes AS bytes FROM gone
)
, tallied AS (
    INSERT INTO tallies (tenant, shard, live, ended, runs, stored_bytes)
    SELECT tenant, (SELECT shard FROM moment), sum(live)::bigint, sum(ended)::bigint, sum(runs)::bigint, sum(bytes)::bigint
    FROM weighed
    GROUP BY tenant
    ON CONFLICT (tenant, shard) DO UPDATE
    SET live = tallies.live + excluded.live, ended = tallies.ended + excluded.ended, runs = tallies.runs + excluded.runs,
        stored_bytes = tallies.stored_bytes + excluded.stored_bytes
)
SELECT count(*) FROM gone
;;
WITH moment AS MATERIALIZED (
    SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now
)
INSERT INTO run_keys (tenant, key, run_id, hash, free_at)
SELECT i.tenant, i.key, i.run_id, i.hash, (SELECT now FROM moment) + $2
FROM unnest($3::text[], $4::text[], $5::text[], $6::bytea[]) AS i(tenant, key, run_id, hash)
ON CONFLICT (tenant, key) DO UPDATE
SET run_id = excluded.run_id, hash = excluded.hash, free_at = excluded.free_at
WHERE run_keys.free_at <= (SELECT now FROM moment)
RETURNING run_id
;;
WITH moment AS MATERIALIZED (
    SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now
)
UPDATE edges SET closed_at = (SELECT now FROM moment)
WHERE closed_at IS NULL AND expires_at <= (SELECT now FROM moment) - $2
RETURNING edge
;;
WITH moment AS MATERIALIZED (
    SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now
), changed AS (
    UPDATE in_force SET version = version + 1, id = $3 WHERE kind = $2 AND version = $4 RETURNING kind, version, id
), kept AS (
    -- An empty text is one that is kept elsewhere; the first that is known stays for ever.
    INSERT INTO snapshots (kind, id, text) SELECT kind, id, $5 FROM changed
    ON CONFLICT (kind, id) DO UPDATE SET text = excluded.text WHERE snapshots.text = ''
), recorded AS (
    INSERT INTO activations (kind, version, id, actor, at)
    SELECT kind, version, id, $6, (SELECT now FROM moment) FROM changed
), audited AS (
    INSERT INTO audit_inbox (at, tenant, actor, action, subject, detail)
    SELECT $7::bigint, $8::text, $9::text, $10::text, $11::text, $12::text FROM changed
)
SELECT version FROM changed
;;
WITH old AS MATERIALIZED (
    SELECT tenant, schedule, series, nominal, decided_at
    FROM schedule_slots
    WHERE outcome NOT IN (0, 2)
        AND decided_at < (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)) - $2
    ORDER BY decided_at, tenant, schedule, series, nominal
    LIMIT $3
), gone AS (
    -- Unless it was decided again meanwhile.
    DELETE FROM schedule_slots AS s USING old
    WHERE s.tenant = old.tenant AND s.schedule = old.schedule AND s.series = old.series AND s.nominal = old.nominal
        AND s.decided_at = old.decided_at AND s.outcome NOT IN (0, 2)
    RETURNING s.nominal
)
SELECT count(*) FROM gone
