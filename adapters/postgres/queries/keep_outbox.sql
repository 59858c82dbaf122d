INSERT INTO outbox (job_id, sink, body)
SELECT i.job_id, i.sink, i.body FROM unnest($1::text[], $2::text[], $3::text[]) AS i(job_id, sink, body)
