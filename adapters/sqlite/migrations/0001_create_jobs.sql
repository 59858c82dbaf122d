-- Live jobs and ended jobs are separate tables, so that a million ended jobs do not slow a claim.
-- States are numbered in the order of JobState: 0 PENDING, 1 APPROVAL_REQUIRED, 2 SCHEDULED, 3 DISPATCHED, 4 RUNNING,
-- 5 SUCCEEDED, 6 FAILED, 7 TIMEOUT, 8 CANCELLED, 9 DENIED, 10 OUTPUT_QUARANTINED. Times are milliseconds since 1970.
-- Long columns come last: a row is read without following its overflow pages when only the first columns are asked for.

-- One row of running numbers, written once per transaction. Sequence numbers are not used again after pruning, and
-- totals must not be counted at every start.
CREATE TABLE book (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    last_seq INTEGER NOT NULL,
    live_critical INTEGER NOT NULL CHECK (live_critical >= 0),
    live_high INTEGER NOT NULL CHECK (live_high >= 0),
    live_default INTEGER NOT NULL CHECK (live_default >= 0),
    live_low INTEGER NOT NULL CHECK (live_low >= 0),
    dead_critical INTEGER NOT NULL CHECK (dead_critical >= 0),
    dead_high INTEGER NOT NULL CHECK (dead_high >= 0),
    dead_default INTEGER NOT NULL CHECK (dead_default >= 0),
    dead_low INTEGER NOT NULL CHECK (dead_low >= 0),
    ended INTEGER NOT NULL CHECK (ended >= 0)
) STRICT;

INSERT INTO book VALUES (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);

-- Unique over live and ended jobs.
CREATE TABLE job_ids (
    job_id TEXT PRIMARY KEY,
    seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE lanes (
    lane_id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE jobs_hot (
    seq INTEGER PRIMARY KEY,
    version INTEGER NOT NULL CHECK (version > 0),
    state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 4),
    priority INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 3),
    lane_id INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    delayed INTEGER NOT NULL CHECK (delayed = 0 OR state = 2),
    deadline_at INTEGER,
    session TEXT CHECK ((session IS NOT NULL) = (state >= 3)),
    tenant TEXT NOT NULL,
    topic TEXT NOT NULL,
    hash BLOB NOT NULL,
    life TEXT NOT NULL,
    request TEXT NOT NULL,
    events TEXT NOT NULL,
    -- NULL: in `payloads`.
    payload TEXT
) STRICT;

CREATE INDEX jobs_ready ON jobs_hot (lane_id, due_at) WHERE state = 2;
CREATE INDEX jobs_due ON jobs_hot (due_at) WHERE state = 2 AND delayed = 1;
CREATE INDEX jobs_pending ON jobs_hot (due_at) WHERE state = 0;
CREATE INDEX jobs_deadline ON jobs_hot (deadline_at) WHERE deadline_at IS NOT NULL;
CREATE INDEX jobs_held ON jobs_hot (session) WHERE session IS NOT NULL;

CREATE TABLE jobs_done (
    seq INTEGER PRIMARY KEY,
    version INTEGER NOT NULL CHECK (version > 0),
    state INTEGER NOT NULL CHECK (state BETWEEN 5 AND 10),
    priority INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 3),
    lane_id INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    topic TEXT NOT NULL,
    hash BLOB NOT NULL,
    life TEXT NOT NULL,
    request TEXT NOT NULL,
    events TEXT NOT NULL,
    payload TEXT,
    result TEXT
) STRICT;

CREATE INDEX jobs_ended ON jobs_done (ended_at);

-- Payloads too long to be copied with every change of their row.
CREATE TABLE payloads (
    seq INTEGER PRIMARY KEY,
    body TEXT NOT NULL
) STRICT;

CREATE TABLE idempotency (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    seq INTEGER NOT NULL,
    free_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_job ON idempotency (seq);
CREATE INDEX idempotency_life ON idempotency (free_at);

CREATE TABLE dead_letters (
    letter_id INTEGER PRIMARY KEY AUTOINCREMENT,
    seq INTEGER NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    topic TEXT NOT NULL,
    priority INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 3),
    reason TEXT NOT NULL,
    letter TEXT NOT NULL
) STRICT;

CREATE TABLE job_logs (
    seq INTEGER NOT NULL,
    n INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    at INTEGER NOT NULL,
    line TEXT NOT NULL,
    PRIMARY KEY (seq, n)
) STRICT, WITHOUT ROWID;

-- Ids are not used again: a late acknowledgement must not hit a new row.
CREATE TABLE outbox (
    outbox_id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL,
    sink TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT;
