-- C-2: a session that has an owner is taken up again by nobody else.
-- An edge that never renews must still be found and closed one day, and nobody would listen at one that was.
WITH known AS (
    INSERT INTO edges (edge, expires_at)
    VALUES ($3, COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))
    ON CONFLICT (edge) DO NOTHING
), closed AS MATERIALIZED (
    SELECT edge FROM edges WHERE edge = $3 AND closed_at IS NOT NULL
), attached AS (
    INSERT INTO sessions (session, epoch, edge, closed_at, profile)
    SELECT $2::text, 1::bigint, $3::text, NULL::bigint, $4::text
    WHERE NOT EXISTS (SELECT 1 FROM closed)
    ON CONFLICT (session) DO UPDATE
    SET epoch = sessions.epoch + 1, edge = excluded.edge, closed_at = NULL, profile = excluded.profile
    WHERE COALESCE(sessions.profile::jsonb ->> 'owner', excluded.profile::jsonb ->> 'owner')
        IS NOT DISTINCT FROM COALESCE(excluded.profile::jsonb ->> 'owner', sessions.profile::jsonb ->> 'owner')
    RETURNING epoch, sent_away_at IS NOT NULL AS sent_away
)
SELECT EXISTS (SELECT 1 FROM closed), attached.epoch, attached.sent_away
FROM (SELECT 1 AS n) AS one
LEFT JOIN attached ON TRUE
