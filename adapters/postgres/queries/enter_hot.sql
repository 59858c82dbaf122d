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
