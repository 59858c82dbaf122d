SELECT children.seq, jobs.job_id
FROM children
CROSS JOIN jobs_hot ON jobs_hot.seq = children.seq
CROSS JOIN jobs ON jobs.seq = children.seq
WHERE children.parent = ?1 AND children.life = ?2 AND children.seq > ?3
ORDER BY children.seq
LIMIT ?4
