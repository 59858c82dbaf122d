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
