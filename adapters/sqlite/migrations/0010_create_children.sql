-- Jobs that attempts of other jobs submitted: which life of which job, written when they are born. Whether one of them is still
-- under way is read off `jobs_hot`, so nothing here changes when a child ends. Other jobs have no row.
CREATE TABLE children (
    parent TEXT NOT NULL,
    life INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (parent, life, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX children_job ON children (seq);
