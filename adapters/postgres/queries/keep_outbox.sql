INSERT INTO outbox (at, job_id, sink, body)
SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint), i.job_id, i.sink, i.body
FROM unnest($2::text[], $3::text[], $4::text[]) AS i(job_id, sink, body)
