-- C-2: a session that has an owner is taken up again by nobody else.
-- An edge that never renews must still be found and closed one day.
WITH known AS (
    INSERT INTO edges (edge, expires_at)
    VALUES ($3, COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))
    ON CONFLICT (edge) DO NOTHING
)
INSERT INTO sessions (session, epoch, edge, closed_at, profile) VALUES ($2, 1, $3, NULL, $4)
ON CONFLICT (session) DO UPDATE
SET epoch = sessions.epoch + 1, edge = excluded.edge, closed_at = NULL, profile = excluded.profile
WHERE COALESCE(sessions.profile::jsonb ->> 'owner', excluded.profile::jsonb ->> 'owner')
    IS NOT DISTINCT FROM COALESCE(excluded.profile::jsonb ->> 'owner', sessions.profile::jsonb ->> 'owner')
RETURNING epoch, sent_away_at IS NOT NULL
