INSERT INTO duties (kind, seq, job_id)
SELECT i.kind, i.seq, i.job_id FROM unnest($1::text[], $2::bigint[], $3::text[]) AS i(kind, seq, job_id)
ON CONFLICT (kind, seq) DO NOTHING
