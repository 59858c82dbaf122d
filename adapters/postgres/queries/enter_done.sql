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
