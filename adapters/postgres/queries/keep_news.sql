INSERT INTO run_news (run_id, at, job_id, seq, child)
SELECT i.run_id, COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint), i.job_id,
    i.seq, i.child
FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[]) AS i(run_id, job_id, seq, child)
