SELECT k.tenant, k.key, k.run_id, k.hash
FROM unnest($1::text[], $2::text[]) AS i(tenant, key)
JOIN run_keys AS k ON k.tenant = i.tenant AND k.key = i.key
