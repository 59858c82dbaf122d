-- Work that somebody else than a worker owes a job, live or ended. A row appears and goes in the commit that makes it so.
CREATE TABLE duties (
    kind TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (kind, seq)
) STRICT, WITHOUT ROWID;

-- Results of live jobs that wait for the scan. Beside the hot row, which would be copied with them at every change.
CREATE TABLE held_results (
    seq INTEGER PRIMARY KEY,
    body TEXT NOT NULL
) STRICT;

-- Texts by content: an id names one text for ever.
CREATE TABLE snapshots (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (kind, id)
) STRICT;

-- The row with the highest version of a kind says what is in force. Rows are never changed: they are its history.
CREATE TABLE activations (
    kind TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version > 0),
    id TEXT NOT NULL,
    actor TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (kind, version)
) STRICT, WITHOUT ROWID;

-- Numbers are not used again: a block names its rows by them.
CREATE TABLE audit (
    audit_id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL
) STRICT;

CREATE TABLE audit_blocks (
    block_no INTEGER PRIMARY KEY CHECK (block_no > 0),
    first_id INTEGER NOT NULL,
    last_id INTEGER NOT NULL CHECK (last_id >= first_id),
    rows INTEGER NOT NULL CHECK (rows > 0),
    previous BLOB NOT NULL CHECK (length(previous) = 32),
    seal BLOB NOT NULL CHECK (length(seal) = 32),
    sealed_at INTEGER NOT NULL
) STRICT;
