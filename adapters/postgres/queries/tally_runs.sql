WITH moment AS MATERIALIZED (
    SELECT $1::bigint AS shard
), weighed AS (
    SELECT i.tenant, 0::bigint AS live, 0::bigint AS ended, i.runs, 0::bigint AS bytes
    FROM unnest($2::text[], $3::bigint[]) AS i(tenant, runs)
)
