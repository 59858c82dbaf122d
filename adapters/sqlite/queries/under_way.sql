-- From the latest child on, one by one: jobs end in about the order in which they came.
SELECT children.seq
FROM children
CROSS JOIN jobs_hot ON jobs_hot.seq = children.seq
WHERE children.parent = ?1 AND children.life = ?2
ORDER BY children.seq DESC
LIMIT 1
