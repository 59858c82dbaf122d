SELECT seq, version, state, hash, life, request, payload, events,
    (SELECT body FROM held_results WHERE held_results.job_id = jobs_hot.job_id) AS result
FROM jobs_hot WHERE job_id = $1
UNION ALL
SELECT seq, version, state, hash, life, request, payload, events, result FROM jobs_done WHERE job_id = $1
