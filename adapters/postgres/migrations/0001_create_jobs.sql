-- A job is one row: of `jobs_hot` while it lives, of `jobs_done` once it has ended. What was asked for lies in the row, so
-- that a whole plain life is four row writes, and a million ended jobs do not slow a claim.
-- States are numbered in the order of JobState: 0 PENDING, 1 APPROVAL_REQUIRED, 2 SCHEDULED, 3 DISPATCHED, 4 RUNNING,
-- 5 SUCCEEDED, 6 FAILED, 7 TIMEOUT, 8 CANCELLED, 9 DENIED, 10 OUTPUT_QUARANTINED. Times are milliseconds since 1970.
-- `life` and `events` are written by packed.rs: one JSON text, and one JSON text per line.

CREATE SEQUENCE job_seq;

CREATE TABLE jobs_hot (
    job_id TEXT PRIMARY KEY,
    seq BIGINT NOT NULL DEFAULT nextval('job_seq'),
    version BIGINT NOT NULL CHECK (version > 0),
    state BIGINT NOT NULL CHECK (state BETWEEN 0 AND 4),
    priority BIGINT NOT NULL CHECK (priority BETWEEN 0 AND 3),
    -- A number made of the lane's key: a lane needs no row of its own, so none is left over when nothing waits in it.
    lane BIGINT CHECK (state <> 2 OR lane IS NOT NULL),
    due_at BIGINT NOT NULL,
    delayed BOOLEAN NOT NULL CHECK (NOT delayed OR state = 2),
    -- When a timer must fire next: the job's deadline, or sooner the end of the time people have to approve it.
    deadline_at BIGINT,
    -- The worker's session that holds the attempt. A RUNNING job has none once its work is done and its result is held.
    session TEXT CHECK (CASE state WHEN 3 THEN session IS NOT NULL WHEN 4 THEN TRUE ELSE session IS NULL END),
    tenant TEXT NOT NULL,
    topic TEXT NOT NULL,
    hash BYTEA NOT NULL,
    request TEXT NOT NULL,
    life TEXT NOT NULL,
    events TEXT NOT NULL,
    payload TEXT NOT NULL
);

CREATE INDEX jobs_hot_seq ON jobs_hot (seq);
CREATE INDEX jobs_ready ON jobs_hot (lane, due_at, seq) WHERE state = 2;
CREATE INDEX jobs_due ON jobs_hot (due_at, seq) WHERE state = 2 AND delayed;
CREATE INDEX jobs_pending ON jobs_hot (due_at, seq) WHERE state = 0;
CREATE INDEX jobs_deadline ON jobs_hot (deadline_at, seq) WHERE deadline_at IS NOT NULL;
CREATE INDEX jobs_held ON jobs_hot (session, seq) WHERE session IS NOT NULL;

CREATE TABLE jobs_done (
    job_id TEXT PRIMARY KEY,
    seq BIGINT NOT NULL,
    version BIGINT NOT NULL CHECK (version > 0),
    state BIGINT NOT NULL CHECK (state BETWEEN 5 AND 10),
    priority BIGINT NOT NULL CHECK (priority BETWEEN 0 AND 3),
    ended_at BIGINT NOT NULL,
    tenant TEXT NOT NULL,
    topic TEXT NOT NULL,
    hash BYTEA NOT NULL,
    request TEXT NOT NULL,
    life TEXT NOT NULL,
    events TEXT NOT NULL,
    payload TEXT NOT NULL,
    result TEXT
);

CREATE INDEX jobs_done_seq ON jobs_done (seq);
CREATE INDEX jobs_ended ON jobs_done (ended_at, seq);

-- Ids that somebody might use again, live or ended. An id made here is never made twice and needs no row.
CREATE TABLE job_ids (job_id TEXT PRIMARY KEY);

-- Results of live jobs that wait for the scan. Beside the hot row, which would be copied with them at every change.
CREATE TABLE held_results (
    job_id TEXT PRIMARY KEY,
    body TEXT NOT NULL
);

-- Counts in many rows, added up when read: a writer has one row of its own, so writers do not wait for each other.
-- The same row is the writer's lock: whoever holds it knows that no transaction of that writer is open.
CREATE TABLE totals (
    shard BIGINT PRIMARY KEY,
    -- Raised by an activation, so that every transaction that waited for the row looks again at what is in force.
    fences BIGINT NOT NULL DEFAULT 0,
    -- Raised when a transaction of this writer was given up with unknown outcome: should it still arrive, it finds another
    -- number than the one it names, and fails.
    guard BIGINT NOT NULL DEFAULT 0,
    live_critical BIGINT NOT NULL DEFAULT 0,
    live_high BIGINT NOT NULL DEFAULT 0,
    live_default BIGINT NOT NULL DEFAULT 0,
    live_low BIGINT NOT NULL DEFAULT 0,
    dead_critical BIGINT NOT NULL DEFAULT 0,
    dead_high BIGINT NOT NULL DEFAULT 0,
    dead_default BIGINT NOT NULL DEFAULT 0,
    dead_low BIGINT NOT NULL DEFAULT 0,
    ended BIGINT NOT NULL DEFAULT 0
);

INSERT INTO totals (shard) SELECT shard FROM generate_series(0, 63) AS shards(shard);

CREATE SEQUENCE writer_seq;

CREATE TABLE idempotency (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    job_id TEXT NOT NULL,
    free_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, key)
);

CREATE INDEX idempotency_job ON idempotency (job_id);
CREATE INDEX idempotency_life ON idempotency (free_at);

CREATE SEQUENCE letter_seq;

CREATE TABLE dead_letters (
    letter_id BIGINT PRIMARY KEY DEFAULT nextval('letter_seq'),
    job_id TEXT NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    topic TEXT NOT NULL,
    priority BIGINT NOT NULL CHECK (priority BETWEEN 0 AND 3),
    reason TEXT NOT NULL,
    letter TEXT NOT NULL
);

CREATE SEQUENCE log_seq;

CREATE TABLE job_logs (
    job_id TEXT NOT NULL,
    log_id BIGINT NOT NULL DEFAULT nextval('log_seq'),
    attempt BIGINT NOT NULL,
    at BIGINT NOT NULL,
    line TEXT NOT NULL,
    PRIMARY KEY (job_id, log_id)
);

CREATE SEQUENCE outbox_seq;

-- Rows of one job are numbered in the order of its commits, which wait for each other.
CREATE TABLE outbox (
    outbox_id BIGINT PRIMARY KEY DEFAULT nextval('outbox_seq'),
    job_id TEXT NOT NULL,
    sink TEXT NOT NULL,
    body TEXT NOT NULL
);
