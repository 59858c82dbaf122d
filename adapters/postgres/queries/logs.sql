SELECT attempt, at, line FROM job_logs WHERE job_id = $1 ORDER BY log_id DESC LIMIT $2
