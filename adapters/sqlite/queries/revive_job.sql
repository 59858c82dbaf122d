INSERT INTO jobs_hot
    (seq, version, state, priority, lane_id, due_at, delayed, deadline_at, session, tenant, topic, hash, life, request, events, payload)
SELECT seq, ?2, ?3, priority, lane_id, ?4, ?5, ?6, NULL, tenant, topic, hash, ?7, request, events || ?8, payload
FROM jobs_done
WHERE seq = ?1 AND version = ?2 - 1
