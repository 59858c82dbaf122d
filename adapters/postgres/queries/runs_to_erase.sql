WITH bound AS MATERIALIZED (
    SELECT $2::bigint AS most
), old AS MATERIALIZED (
    SELECT r.run_id, r.version, r.ended_at
    FROM runs AS r
    WHERE r.tenant = $1 AND r.state >= 4
        AND NOT EXISTS (SELECT 1 FROM runs AS around WHERE around.run_id = r.parent AND around.state < 4)
    ORDER BY r.run_no
    LIMIT $2
)
