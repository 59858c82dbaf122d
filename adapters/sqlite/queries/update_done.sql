UPDATE jobs_done
SET version = ?2, state = ?3, ended_at = ?4, life = ?5, events = events || ?6,
    -- A new life has no result of the one before.
    result = CASE WHEN life ->> '$.n' = ?5 ->> '$.n' THEN COALESCE(?7, result) ELSE ?7 END
WHERE seq = ?1 AND version = ?2 - 1
