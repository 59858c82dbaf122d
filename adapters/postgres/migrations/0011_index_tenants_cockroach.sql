-- What may be erased, and what goes with a job. Indexes that grow with time would be written to one range.
CREATE INDEX runs_over ON runs (tenant, run_no) USING HASH WHERE state >= 4;
CREATE INDEX outbox_job ON outbox (job_id) USING HASH;
