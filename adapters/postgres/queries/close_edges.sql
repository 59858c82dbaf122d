WITH moment AS MATERIALIZED (
    SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now
)
UPDATE edges SET closed_at = (SELECT now FROM moment)
FROM unnest($3::text[], $4::bigint[]) AS i(edge, expires_at)
WHERE edges.edge = i.edge AND edges.expires_at = i.expires_at
    AND edges.closed_at IS NULL
    AND (
        edges.expires_at <= (SELECT now FROM moment) - $2
        -- A clock that was ahead made it.
        OR edges.expires_at > (SELECT now FROM moment) + $5
    )
RETURNING edges.edge
