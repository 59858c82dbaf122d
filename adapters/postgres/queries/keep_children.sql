INSERT INTO children (parent, life, seq, job_id)
SELECT i.parent, i.life, i.seq, i.job_id
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[]) AS i(parent, life, seq, job_id)
