UPDATE jobs_done
SET version = ?2, state = ?3, ended_at = ?4, life = ?5, events = events || ?6, result = COALESCE(?7, result)
WHERE seq = ?1 AND version = ?2 - 1
