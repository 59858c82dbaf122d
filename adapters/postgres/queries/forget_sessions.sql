DELETE FROM sessions
WHERE closed_at <= (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)) - $2
    AND NOT EXISTS (SELECT 1 FROM jobs_hot WHERE jobs_hot.session = sessions.session)
