, taken AS (
    INSERT INTO idempotency (tenant, key, job_id, free_at)
    SELECT i.tenant, i.key, i.job_id, (SELECT now FROM moment) + i.life
    FROM unnest($10::bigint[], $11::text[], $12::text[], $13::text[], $14::bigint[]) AS i(proof, tenant, key, job_id, life)
    WHERE (SELECT holds FROM proof)[i.proof]
    ON CONFLICT (tenant, key) DO UPDATE SET job_id = excluded.job_id, free_at = excluded.free_at
    WHERE idempotency.free_at <= (SELECT now FROM moment)
    RETURNING job_id
)
SELECT job_id FROM taken
