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
