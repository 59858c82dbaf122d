-- Jobs that attempts of other jobs submitted: which life of which job, written when they are born. Whether one of them is still
-- under way is read off `jobs_hot`, so nothing here changes when a child ends, and a process that does not know this table ends
-- children as it ends every job. Other jobs have no row.
CREATE TABLE children (
    parent TEXT NOT NULL,
    life BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    job_id TEXT NOT NULL,
    PRIMARY KEY (parent, life, seq)
);

CREATE INDEX children_job ON children (job_id) USING HASH;
