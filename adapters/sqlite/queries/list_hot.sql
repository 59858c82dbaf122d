SELECT seq, version, state, hash, life, request, tenant, topic
FROM jobs_hot
WHERE seq < ?1
ORDER BY seq DESC
