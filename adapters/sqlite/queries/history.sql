SELECT state, events, NULL FROM jobs_hot WHERE seq = ?1
UNION ALL
SELECT state, events, result FROM jobs_done WHERE seq = ?1
