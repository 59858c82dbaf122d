-- Work that somebody else than a worker owes a job, live or ended. A row appears and goes in the commit that makes it so.
CREATE TABLE duties (
    kind TEXT NOT NULL,
    seq BIGINT NOT NULL,
    job_id TEXT NOT NULL,
    PRIMARY KEY (kind, seq)
);

CREATE INDEX duties_job ON duties (job_id);

-- Texts by content: an id names one text for ever.
CREATE TABLE snapshots (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (kind, id)
);

-- What is in force; version 0 is what nobody activated.
CREATE TABLE in_force (
    kind TEXT PRIMARY KEY,
    version BIGINT NOT NULL CHECK (version >= 0),
    id TEXT NOT NULL
);

INSERT INTO in_force (kind, version, id)
VALUES ('policy', 0, 'builtin:allow'), ('pools', 0, 'builtin:default'), ('timeouts', 0, 'builtin:timeouts'),
    ('pool_states', 0, 'builtin:open');

-- Rows are never changed: they are the history of what was in force.
CREATE TABLE activations (
    kind TEXT NOT NULL,
    version BIGINT NOT NULL CHECK (version > 0),
    id TEXT NOT NULL,
    actor TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (kind, version)
);

CREATE SEQUENCE audit_inbox_seq;

-- Where commits leave their audit rows. Numbers of a sequence are not in commit order, so rows get their lasting number
-- later, one mover at a time: a reader that has seen number n has seen all before it.
CREATE TABLE audit_inbox (
    inbox_id BIGINT PRIMARY KEY DEFAULT nextval('audit_inbox_seq'),
    at BIGINT NOT NULL,
    tenant TEXT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL
);

CREATE TABLE audit_head (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    last_id BIGINT NOT NULL
);

INSERT INTO audit_head (one, last_id) VALUES (1, 0);

CREATE TABLE audit (
    audit_id BIGINT PRIMARY KEY,
    at BIGINT NOT NULL,
    tenant TEXT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL
);

CREATE TABLE audit_blocks (
    block_no BIGINT PRIMARY KEY CHECK (block_no > 0),
    first_id BIGINT NOT NULL,
    last_id BIGINT NOT NULL CHECK (last_id >= first_id),
    row_count BIGINT NOT NULL CHECK (row_count > 0),
    previous BYTEA NOT NULL CHECK (length(previous) = 32),
    seal BYTEA NOT NULL CHECK (length(seal) = 32),
    sealed_at BIGINT NOT NULL
);
