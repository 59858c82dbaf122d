-- Definitions by version. Rows are never changed.
CREATE TABLE dags (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version > 0),
    snapshot TEXT NOT NULL,
    actor TEXT NOT NULL,
    at INTEGER NOT NULL,
    pins TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (tenant, name, version)
) STRICT;

-- States are numbered in the order of RunState: 0 RUNNING, 1 PAUSED, 2 COMPENSATING, 3 COMPENSATION_STUCK, 4 SUCCEEDED,
-- 5 SUCCEEDED_WITH_FAILURES, 6 FAILED, 7 CANCELED, 8 COMPENSATED.
CREATE TABLE runs (
    run_no INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL CHECK (version > 0),
    state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 8),
    wakes_at INTEGER,
    ended_at INTEGER CHECK ((ended_at IS NULL) = (state < 4)),
    parent TEXT,
    tenant TEXT NOT NULL,
    dag TEXT NOT NULL,
    head TEXT NOT NULL
) STRICT;

CREATE INDEX runs_live ON runs (run_id) WHERE state < 4;
CREATE INDEX runs_waking ON runs (wakes_at, run_id) WHERE state < 4 AND wakes_at IS NOT NULL;
CREATE INDEX runs_ended ON runs (ended_at, run_id) WHERE ended_at IS NOT NULL;

-- A node without a row has not left PENDING. `item` is −1 for the node itself, `version` the run's when it was last written.
CREATE TABLE run_nodes (
    run_no INTEGER NOT NULL,
    node INTEGER NOT NULL,
    item INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run_no, node, item)
) STRICT;

CREATE INDEX run_nodes_changed ON run_nodes (run_no, version);

-- Which run a job belongs to, so that pruning spares it while the run goes on. Other jobs have no row.
CREATE TABLE run_jobs (
    seq INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL
) STRICT;

CREATE TABLE run_keys (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    run_id TEXT NOT NULL,
    hash BLOB NOT NULL,
    free_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX run_keys_run ON run_keys (run_id);
CREATE INDEX run_keys_life ON run_keys (free_at);

-- What runs have not heard yet: that a job ended, or that a run inside of them is over. Numbers are not used again.
CREATE TABLE run_news (
    news_no INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    seq INTEGER,
    child TEXT CHECK ((child IS NULL) <> (seq IS NULL))
) STRICT;

CREATE INDEX run_news_run ON run_news (run_id);
CREATE INDEX run_news_age ON run_news (at);
