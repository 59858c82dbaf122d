SELECT live, ended, runs, stored_bytes, tenant
FROM tallies
WHERE tenant > ?1 AND (live <> 0 OR ended <> 0 OR runs <> 0 OR stored_bytes <> 0)
ORDER BY tenant
LIMIT ?2
