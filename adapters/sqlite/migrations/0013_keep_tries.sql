-- Since when no worker can take what waits: one text, so that a restart does not begin to count anew.
CREATE TABLE placing_tries (only INTEGER PRIMARY KEY CHECK (only = 1), tries TEXT NOT NULL) STRICT;
