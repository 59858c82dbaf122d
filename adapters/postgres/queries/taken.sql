-- Who has the key, else the id, of new jobs: as a commit of them would find it.
WITH asked AS (
    SELECT i.n, i.job_id, k.job_id AS by_key
    FROM unnest($2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS i(job_id, tenant, key, n)
    LEFT JOIN idempotency AS k ON k.tenant = i.tenant AND k.key = i.key
        AND k.free_at > COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
)
SELECT a.n, a.by_key IS NOT NULL, o.job_id, o.tenant, o.hash, o.state
FROM asked AS a
CROSS JOIN LATERAL (
    SELECT job_id, tenant, hash, state FROM jobs_hot WHERE jobs_hot.job_id = COALESCE(a.by_key, a.job_id)
    UNION ALL
    SELECT job_id, tenant, hash, state FROM jobs_done WHERE jobs_done.job_id = COALESCE(a.by_key, a.job_id)
) AS o
