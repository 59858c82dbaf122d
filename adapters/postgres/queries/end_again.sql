-- A late scan, a release, a discard, or a replay that was denied at once.
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
