, tallied AS (
    INSERT INTO tallies (tenant, shard, live, ended, runs, stored_bytes)
    SELECT tenant, (SELECT shard FROM moment), sum(live)::bigint, sum(ended)::bigint, sum(runs)::bigint, sum(bytes)::bigint
    FROM weighed
    GROUP BY tenant
    ON CONFLICT (tenant, shard) DO UPDATE
    SET live = tallies.live + excluded.live, ended = tallies.ended + excluded.ended, runs = tallies.runs + excluded.runs,
        stored_bytes = tallies.stored_bytes + excluded.stored_bytes
)
