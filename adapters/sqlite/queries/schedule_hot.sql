UPDATE jobs_hot
SET version = ?2, state = ?3, due_at = ?4, delayed = ?5, deadline_at = ?6, session = ?7, life = ?8, events = events || ?9,
    lane_id = ?10
WHERE seq = ?1 AND version = ?2 - 1
