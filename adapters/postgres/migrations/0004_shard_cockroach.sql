-- Keys that grow with time would all be written to one range.
ALTER TABLE jobs_hot ALTER PRIMARY KEY USING COLUMNS (job_id) USING HASH;
ALTER TABLE jobs_done ALTER PRIMARY KEY USING COLUMNS (job_id) USING HASH;
