WITH bound AS MATERIALIZED (
    SELECT $3::bigint AS most
), old AS MATERIALIZED (
    SELECT r.run_id, r.version, r.ended_at
    FROM runs AS r
    WHERE r.ended_at < (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)) - $2
        AND NOT EXISTS (SELECT 1 FROM runs AS around WHERE around.run_id = r.parent AND around.state < 4)
    ORDER BY r.ended_at, r.run_id
    LIMIT $3
)
