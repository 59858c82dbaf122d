INSERT INTO jobs (seq, job_id, tenant, topic, hash, request, payload) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (job_id) DO NOTHING
