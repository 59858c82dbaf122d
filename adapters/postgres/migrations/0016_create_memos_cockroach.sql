-- Which job last did the work of a key, and until when what came of it stands for the same work.
CREATE TABLE memos (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    -- With its number: an id can be used again once its job is gone.
    job_id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    until BIGINT NOT NULL,
    PRIMARY KEY (tenant, key)
);

CREATE INDEX memos_job ON memos (job_id) USING HASH;
CREATE INDEX memos_life ON memos (until) USING HASH;
