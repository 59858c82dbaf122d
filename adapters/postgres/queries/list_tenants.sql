SELECT tenant, sum(live)::bigint, sum(ended)::bigint, sum(runs)::bigint, sum(stored_bytes)::bigint
FROM tallies
WHERE tenant > $1
GROUP BY tenant
HAVING sum(live) <> 0 OR sum(ended) <> 0 OR sum(runs) <> 0 OR sum(stored_bytes) <> 0
ORDER BY tenant
LIMIT $2
