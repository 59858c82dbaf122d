SELECT state, hash, request FROM jobs_hot WHERE seq = ?1
UNION ALL
SELECT state, hash, request FROM jobs_done WHERE seq = ?1
