SELECT jobs_done.seq, jobs_done.version, jobs_done.state, jobs.hash, jobs_done.life, jobs.request, jobs.tenant, jobs.topic
FROM children
CROSS JOIN jobs_done ON jobs_done.seq = children.seq
CROSS JOIN jobs ON jobs.seq = children.seq
WHERE children.parent = ?2 AND children.seq < ?1
ORDER BY children.life DESC, children.seq DESC
