SELECT sessions.session, sessions.epoch, sessions.edge, edges.closed_at IS NOT NULL, sessions.profile, sessions.sent_away_at IS NOT NULL
FROM sessions
LEFT JOIN edges ON edges.edge = sessions.edge
WHERE sessions.closed_at IS NULL
ORDER BY sessions.session
