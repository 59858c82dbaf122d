SELECT tenant, sum(live)::bigint, sum(ended)::bigint, sum(runs)::bigint, sum(stored_bytes)::bigint
FROM tallies
WHERE tenant = ANY($1::text[])
GROUP BY tenant
