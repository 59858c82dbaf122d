INSERT INTO run_jobs (job_id, run_id) SELECT i.job_id, i.run_id FROM unnest($1::text[], $2::text[]) AS i(job_id, run_id)
