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
