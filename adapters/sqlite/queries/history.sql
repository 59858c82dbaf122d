SELECT state, events, (SELECT body FROM held_results WHERE held_results.seq = jobs_hot.seq) FROM jobs_hot WHERE seq = ?1
UNION ALL
SELECT state, events, result FROM jobs_done WHERE seq = ?1
