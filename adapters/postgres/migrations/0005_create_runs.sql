-- Definitions by version. Rows are never changed.
CREATE TABLE dags (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    version BIGINT NOT NULL CHECK (version > 0),
    snapshot TEXT NOT NULL,
    actor TEXT NOT NULL,
    at BIGINT NOT NULL,
    pins TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (tenant, name, version)
);

-- Held by whoever puts a definition, so that versions have no gaps and the latest is the latest.
CREATE TABLE dag_lock (one BIGINT PRIMARY KEY CHECK (one = 1));

INSERT INTO dag_lock (one) VALUES (1);

CREATE SEQUENCE run_seq;

-- States are numbered in the order of RunState: 0 RUNNING, 1 PAUSED, 2 COMPENSATING, 3 COMPENSATION_STUCK, 4 SUCCEEDED,
-- 5 SUCCEEDED_WITH_FAILURES, 6 FAILED, 7 CANCELED, 8 COMPENSATED.
CREATE TABLE runs (
    run_id TEXT PRIMARY KEY,
    run_no BIGINT NOT NULL DEFAULT nextval('run_seq'),
    version BIGINT NOT NULL CHECK (version > 0),
    state BIGINT NOT NULL CHECK (state BETWEEN 0 AND 8),
    wakes_at BIGINT,
    ended_at BIGINT CHECK ((ended_at IS NULL) = (state < 4)),
    parent TEXT,
    tenant TEXT NOT NULL,
    dag TEXT NOT NULL,
    head TEXT NOT NULL
);

CREATE INDEX runs_listed ON runs (run_no);
CREATE INDEX runs_live ON runs (run_id) WHERE state < 4;
CREATE INDEX runs_waking ON runs (wakes_at, run_id) WHERE state < 4 AND wakes_at IS NOT NULL;
CREATE INDEX runs_ended ON runs (ended_at, run_id) WHERE ended_at IS NOT NULL;

-- A node without a row has not left PENDING. `item` is -1 for the node itself, `version` the run's when it was last written.
CREATE TABLE run_nodes (
    run_id TEXT NOT NULL,
    node BIGINT NOT NULL,
    item BIGINT NOT NULL,
    version BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run_id, node, item)
);

CREATE INDEX run_nodes_changed ON run_nodes (run_id, version);

-- Which run a job belongs to, so that pruning spares it while the run goes on. Other jobs have no row.
CREATE TABLE run_jobs (
    job_id TEXT PRIMARY KEY,
    run_id TEXT NOT NULL
);

CREATE TABLE run_keys (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    run_id TEXT NOT NULL,
    hash BYTEA NOT NULL,
    free_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, key)
);

CREATE INDEX run_keys_run ON run_keys (run_id);
CREATE INDEX run_keys_life ON run_keys (free_at);

CREATE SEQUENCE news_seq;

-- What runs have not heard yet: that a job ended, or that a run inside of them is over.
CREATE TABLE run_news (
    news_no BIGINT PRIMARY KEY DEFAULT nextval('news_seq'),
    run_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    -- With its number: an id can be used again once its job is gone.
    job_id TEXT,
    seq BIGINT CHECK ((seq IS NULL) = (job_id IS NULL)),
    child TEXT CHECK ((child IS NULL) <> (job_id IS NULL))
);

CREATE INDEX run_news_run ON run_news (run_id, news_no);
CREATE INDEX run_news_age ON run_news (at, news_no);
