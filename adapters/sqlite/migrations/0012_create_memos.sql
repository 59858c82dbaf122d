-- Which job last did the work of a key, and until when what came of it stands for the same work.
CREATE TABLE memos (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    seq INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) WITHOUT ROWID;

CREATE INDEX memos_job ON memos (seq);
CREATE INDEX memos_life ON memos (until);
