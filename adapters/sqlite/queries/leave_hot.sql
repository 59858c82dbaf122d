SELECT priority, lane_id, tenant, topic, hash, request, events, payload
FROM jobs_hot
WHERE seq = ?1 AND version = ?2
