SELECT outbox_id, job_id, sink, body, at
FROM outbox
WHERE outbox_id > $2
    AND at <= (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)) - $3
ORDER BY outbox_id
LIMIT $4
