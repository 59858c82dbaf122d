INSERT INTO sessions (session, epoch, edge, closed_at, profile) VALUES (?1, 1, ?2, NULL, ?3)
ON CONFLICT (session) DO UPDATE
SET epoch = epoch + 1, edge = excluded.edge, closed_at = NULL, profile = excluded.profile
RETURNING epoch, sent_away_at IS NOT NULL
