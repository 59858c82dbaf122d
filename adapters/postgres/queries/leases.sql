SELECT name, holder, epoch,
    expires_at - COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
FROM leases
