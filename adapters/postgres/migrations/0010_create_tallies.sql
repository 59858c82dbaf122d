-- What each tenant takes, in rows by writer as in `totals`, added up when read: writers do not wait for each other. Whoever
-- changes a row of a shard holds the same shard of `totals`. `stored_bytes` counts payloads and results as they are stored
-- now. Rows stay when all is gone: the tenant was here, until it is erased.
CREATE TABLE tallies (
    tenant TEXT NOT NULL,
    shard BIGINT NOT NULL,
    live BIGINT NOT NULL,
    ended BIGINT NOT NULL,
    runs BIGINT NOT NULL,
    stored_bytes BIGINT NOT NULL,
    PRIMARY KEY (tenant, shard)
);

INSERT INTO tallies (tenant, shard, live, ended, runs, stored_bytes)
SELECT tenant, 0, sum(live)::bigint, sum(ended)::bigint, sum(runs)::bigint, sum(stored_bytes)::bigint
FROM (
    SELECT jobs_hot.tenant, 1 AS live, 0 AS ended, 0 AS runs,
        octet_length(jobs_hot.payload) + COALESCE(octet_length(held_results.body), 0) AS stored_bytes
    FROM jobs_hot
    LEFT JOIN held_results ON held_results.job_id = jobs_hot.job_id
    UNION ALL
    SELECT tenant, 0, 1, 0, octet_length(payload) + COALESCE(octet_length(result), 0) FROM jobs_done
    UNION ALL
    SELECT tenant, 0, 0, CASE WHEN state < 4 THEN 1 ELSE 0 END, 0 FROM runs
) AS there
GROUP BY tenant;
