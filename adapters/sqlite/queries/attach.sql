-- C-2: a session that has an owner is taken up again by nobody else.
INSERT INTO sessions (session, epoch, edge, closed_at, profile) VALUES (?1, 1, ?2, NULL, ?3)
ON CONFLICT (session) DO UPDATE
SET epoch = epoch + 1, edge = excluded.edge, closed_at = NULL, profile = excluded.profile
WHERE COALESCE(sessions.profile ->> '$.owner', excluded.profile ->> '$.owner')
    IS COALESCE(excluded.profile ->> '$.owner', sessions.profile ->> '$.owner')
RETURNING epoch, sent_away_at IS NOT NULL
