WITH moment AS MATERIALIZED (
    SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now
)
UPDATE edges SET closed_at = (SELECT now FROM moment)
WHERE closed_at IS NULL AND expires_at <= (SELECT now FROM moment) - $2
RETURNING edge
