-- A job is one row of `jobs`, which never changes, and one row of either `jobs_hot` or `jobs_done`, which does: a change
-- rewrites only what it is about, and a million ended jobs do not slow a claim.
-- States are numbered in the order of JobState: 0 PENDING, 1 APPROVAL_REQUIRED, 2 SCHEDULED, 3 DISPATCHED, 4 RUNNING,
-- 5 SUCCEEDED, 6 FAILED, 7 TIMEOUT, 8 CANCELLED, 9 DENIED, 10 OUTPUT_QUARANTINED. Times are milliseconds since 1970.
-- `life` and `events` are written by packed.rs: one JSON text, and one JSON text per line.
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

-- What was asked for. The id is unique over live and ended jobs.
CREATE TABLE jobs (
    seq INTEGER PRIMARY KEY,
    job_id TEXT NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    topic TEXT NOT NULL,
    hash BLOB NOT NULL,
    request TEXT NOT NULL,
    payload TEXT NOT NULL
) STRICT;

CREATE TABLE lanes (
    lane_id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE jobs_hot (
    seq INTEGER PRIMARY KEY,
    version INTEGER NOT NULL CHECK (version > 0),
    state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 4),
    lane_id INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    delayed INTEGER NOT NULL CHECK (delayed = 0 OR state = 2),
    -- When a timer must fire next: the job's deadline, or sooner the end of the time people have to approve it.
    deadline_at INTEGER,
    -- The worker's session that holds the attempt. A RUNNING job has none once its work is done and its result is held.
    session TEXT CHECK (CASE state WHEN 3 THEN session IS NOT NULL WHEN 4 THEN TRUE ELSE session IS NULL END),
    life TEXT NOT NULL,
    events TEXT NOT NULL
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
    ended_at INTEGER NOT NULL,
    life TEXT NOT NULL,
    events TEXT NOT NULL,
    result TEXT
) STRICT;

CREATE INDEX jobs_ended ON jobs_done (ended_at);

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
