UPDATE runs
SET version = ?2, state = ?3, wakes_at = ?4, ended_at = ?5, parent = ?6, head = ?7
WHERE run_id = ?1 AND version = ?2 - 1
