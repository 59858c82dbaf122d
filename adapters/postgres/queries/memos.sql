SELECT d.seq, d.version, d.state, d.hash, d.life, d.request, d.result, m.tenant, m.key
FROM unnest($2::text[], $3::text[]) AS i(tenant, key)
JOIN memos AS m ON m.tenant = i.tenant AND m.key = i.key
JOIN jobs_done AS d ON d.job_id = m.job_id AND d.seq = m.seq
WHERE m.until > (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))
    AND d.result IS NOT NULL
