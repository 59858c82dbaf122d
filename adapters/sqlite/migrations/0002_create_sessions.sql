CREATE TABLE edges (
    edge TEXT PRIMARY KEY,
    expires_at INTEGER NOT NULL,
    closed_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    session TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL CHECK (epoch > 0),
    edge TEXT NOT NULL,
    closed_at INTEGER,
    profile TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_edge ON sessions (edge);

-- The epoch outlives its holder, so that it never goes back.
CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    holder TEXT,
    epoch INTEGER NOT NULL CHECK (epoch > 0),
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
