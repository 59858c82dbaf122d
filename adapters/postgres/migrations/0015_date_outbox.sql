-- When a row was committed: what its committer could not relay is relayed by another once it is old.
ALTER TABLE outbox ADD COLUMN at BIGINT NOT NULL DEFAULT 0;
