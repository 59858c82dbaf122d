INSERT INTO jobs_done
    (seq, version, state, priority, lane_id, ended_at, tenant, topic, hash, life, request, events, payload, result)
VALUES
    (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12 || ?13, ?14, ?15)
