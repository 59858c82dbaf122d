INSERT INTO memos (tenant, key, job_id, seq, until)
SELECT i.tenant, i.key, i.job_id, i.seq,
    COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) + i.life
FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[]) AS i(tenant, key, job_id, seq, life)
ON CONFLICT (tenant, key) DO UPDATE SET job_id = excluded.job_id, seq = excluded.seq, until = excluded.until
