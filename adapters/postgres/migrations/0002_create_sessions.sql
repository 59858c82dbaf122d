CREATE TABLE edges (
    edge TEXT PRIMARY KEY,
    expires_at BIGINT NOT NULL,
    closed_at BIGINT
);

CREATE TABLE sessions (
    session TEXT PRIMARY KEY,
    epoch BIGINT NOT NULL CHECK (epoch > 0),
    edge TEXT NOT NULL,
    closed_at BIGINT,
    profile TEXT NOT NULL
);

CREATE INDEX sessions_edge ON sessions (edge);
CREATE INDEX sessions_closed ON sessions (closed_at) WHERE closed_at IS NOT NULL;

-- The epoch outlives its holder, so that it never goes back.
CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    holder TEXT,
    epoch BIGINT NOT NULL CHECK (epoch > 0),
    expires_at BIGINT NOT NULL
);

-- Written to find out whether writing works.
CREATE TABLE pulse (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    beats BIGINT NOT NULL
);

INSERT INTO pulse (one, beats) VALUES (1, 0);
