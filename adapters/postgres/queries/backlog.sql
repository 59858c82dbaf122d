SELECT count(*), (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)) - min(at)
FROM (SELECT at FROM outbox ORDER BY outbox_id LIMIT $2) AS oldest
