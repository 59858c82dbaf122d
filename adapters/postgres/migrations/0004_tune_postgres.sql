-- Names are compared byte by byte, whatever language the database speaks.
ALTER TABLE jobs_hot ALTER COLUMN job_id TYPE TEXT COLLATE "C", ALTER COLUMN session TYPE TEXT COLLATE "C";
ALTER TABLE jobs_done ALTER COLUMN job_id TYPE TEXT COLLATE "C";
ALTER TABLE job_ids ALTER COLUMN job_id TYPE TEXT COLLATE "C";

-- Rows of live jobs are short-lived: dead ones are swept before they slow the reading of a queue.
ALTER TABLE jobs_hot SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
