-- When an operator wanted the session to leave.
ALTER TABLE sessions ADD COLUMN sent_away_at BIGINT;
