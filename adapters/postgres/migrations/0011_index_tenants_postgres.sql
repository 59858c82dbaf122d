-- Names are compared byte by byte, whatever language the database speaks.
ALTER TABLE tallies ALTER COLUMN tenant TYPE TEXT COLLATE "C";
-- And as the ids of jobs are, or no index finds what belongs to a job that moves or goes.
ALTER TABLE held_results ALTER COLUMN job_id TYPE TEXT COLLATE "C";
ALTER TABLE job_logs ALTER COLUMN job_id TYPE TEXT COLLATE "C";
ALTER TABLE idempotency ALTER COLUMN job_id TYPE TEXT COLLATE "C";
ALTER TABLE duties ALTER COLUMN job_id TYPE TEXT COLLATE "C";
ALTER TABLE dead_letters ALTER COLUMN job_id TYPE TEXT COLLATE "C";
ALTER TABLE outbox ALTER COLUMN job_id TYPE TEXT COLLATE "C";

-- What may be erased, and what goes with a job.
CREATE INDEX runs_over ON runs (tenant, run_no) WHERE state >= 4;
CREATE INDEX outbox_job ON outbox (job_id);

-- Every transaction of a writer changes the rows of its tenants: dead ones are swept before they slow the adding up.
ALTER TABLE tallies SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
