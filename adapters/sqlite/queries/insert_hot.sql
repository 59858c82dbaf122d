INSERT INTO jobs_hot (seq, version, state, lane_id, due_at, delayed, deadline_at, session, life, events)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, NULL, ?8, ?9)
