-- A late scan, a release, or a replay that was denied at once.
UPDATE jobs_done AS d
SET version = i.version, state = i.state, ended_at = COALESCE(i.ended_at, (SELECT now FROM moment)), life = i.life,
    events = d.events || i.events,
    -- A new life has no result of the one before.
    result = CASE WHEN (d.life::jsonb ->> 'n')::bigint = i.life_no THEN COALESCE(i.result, d.result) ELSE i.result END
FROM unnest($10::bigint[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[], $15::text[], $16::text[],
    $17::text[], $18::bigint[])
    AS i(proof, job_id, version, state, ended_at, life, events, result, life_no)
WHERE d.job_id = i.job_id AND d.version = i.version - 1
    AND (SELECT holds FROM proof)[i.proof]
RETURNING d.job_id, d.seq
