-- What somebody shows to come in. Rows are kept for ever, and only `ends_at` changes: C-1, it never grows.
CREATE TABLE credentials (
    id TEXT PRIMARY KEY,
    ends_at BIGINT,
    body TEXT NOT NULL
);
