INSERT INTO jobs_done (seq, version, state, ended_at, life, events, result)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
