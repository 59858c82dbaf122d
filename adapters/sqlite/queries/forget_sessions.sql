DELETE FROM sessions
WHERE closed_at <= ?1 AND NOT EXISTS (SELECT 1 FROM jobs_hot WHERE jobs_hot.session = sessions.session)
