INSERT INTO jobs_hot
    (seq, version, state, priority, lane_id, due_at, delayed, deadline_at, session, tenant, topic, hash, life, request, events, payload)
VALUES
    (?1, 1, ?2, ?3, ?4, ?5, ?6, ?7, NULL, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
