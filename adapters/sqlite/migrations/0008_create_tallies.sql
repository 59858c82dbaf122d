-- What each tenant takes, kept up to date by the transactions that change it. `stored_bytes` counts payloads and results as
-- they are stored now. A row stays when all is gone: the tenant was here, until it is erased.
CREATE TABLE tallies (
    tenant TEXT PRIMARY KEY,
    live INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    runs INTEGER NOT NULL,
    stored_bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO tallies (tenant, live, ended, runs, stored_bytes)
SELECT tenant, SUM(live), SUM(ended), SUM(runs), SUM(stored_bytes)
FROM (
    SELECT jobs.tenant AS tenant, jobs_done.seq IS NULL AS live, jobs_done.seq IS NOT NULL AS ended, 0 AS runs,
        octet_length(jobs.payload) + COALESCE(octet_length(jobs_done.result), octet_length(held_results.body), 0)
            AS stored_bytes
    FROM jobs
    LEFT JOIN jobs_done ON jobs_done.seq = jobs.seq
    LEFT JOIN held_results ON held_results.seq = jobs.seq
    UNION ALL
    SELECT tenant, 0, 0, state < 4, 0 FROM runs
)
GROUP BY tenant;

-- Zeros, for as long as it takes to overwrite the pages that nothing uses.
CREATE TABLE blanks (
    n INTEGER PRIMARY KEY,
    zeros BLOB NOT NULL
) STRICT;

-- What may be erased, and what goes with a job.
CREATE INDEX runs_over ON runs (tenant) WHERE state >= 4;
CREATE INDEX outbox_job ON outbox (job_id);
