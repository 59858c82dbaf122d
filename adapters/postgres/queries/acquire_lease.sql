INSERT INTO leases (name, holder, epoch, expires_at)
VALUES ($2, $3, 1, COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) + $4)
ON CONFLICT (name) DO UPDATE
SET holder = excluded.holder, expires_at = excluded.expires_at,
    epoch = leases.epoch + CASE WHEN leases.holder IS NOT DISTINCT FROM excluded.holder THEN 0 ELSE 1 END
WHERE leases.holder IS NULL OR leases.holder = excluded.holder
    OR leases.expires_at <= COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
    -- A clock that was ahead made it.
    OR leases.expires_at > COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) + $4 + $5
RETURNING epoch
