SELECT k.tenant, k.key, k.job_id
FROM unnest($1::text[], $2::text[]) AS i(tenant, key)
JOIN idempotency AS k ON k.tenant = i.tenant AND k.key = i.key
