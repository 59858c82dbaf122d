SELECT seq, version, state, hash, life, request, tenant, topic
FROM jobs_done
WHERE seq < ?1
ORDER BY seq DESC
