WITH moment AS MATERIALIZED (
    SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now
)
INSERT INTO run_keys (tenant, key, run_id, hash, free_at)
SELECT i.tenant, i.key, i.run_id, i.hash, (SELECT now FROM moment) + $2
FROM unnest($3::text[], $4::text[], $5::text[], $6::bytea[]) AS i(tenant, key, run_id, hash)
ON CONFLICT (tenant, key) DO UPDATE
SET run_id = excluded.run_id, hash = excluded.hash, free_at = excluded.free_at
WHERE run_keys.free_at <= (SELECT now FROM moment)
RETURNING run_id
