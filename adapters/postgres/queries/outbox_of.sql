SELECT outbox_id, job_id, sink, body, at
FROM outbox
WHERE job_id = ANY($1::text[])
