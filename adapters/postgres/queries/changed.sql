SELECT job_id, seq FROM changed
