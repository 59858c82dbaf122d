SELECT attempt, at, line, log_id FROM job_logs WHERE job_id = $1 AND log_id > $3 ORDER BY log_id DESC LIMIT $2
