SELECT s.session, s.epoch, s.edge, e.closed_at IS NOT NULL, s.profile, s.sent_away_at IS NOT NULL
FROM sessions AS s
LEFT JOIN edges AS e ON e.edge = s.edge
WHERE s.closed_at IS NOT NULL
    AND EXISTS (SELECT 1 FROM jobs_hot WHERE jobs_hot.session = s.session)
