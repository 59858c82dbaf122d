SELECT jobs_hot.seq, jobs_hot.version, jobs_hot.state, jobs.hash, jobs_hot.life, jobs.request, jobs.tenant, jobs.topic
FROM children
CROSS JOIN jobs_hot ON jobs_hot.seq = children.seq
CROSS JOIN jobs ON jobs.seq = children.seq
WHERE children.parent = ?2 AND children.seq < ?1
ORDER BY children.life DESC, children.seq DESC
