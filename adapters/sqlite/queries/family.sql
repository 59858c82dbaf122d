SELECT count(*), count(jobs_hot.seq), max(jobs_hot.seq)
FROM children
LEFT JOIN jobs_hot ON jobs_hot.seq = children.seq
WHERE children.parent = ?1 AND children.life = ?2
