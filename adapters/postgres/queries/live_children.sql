-- The inner LIMIT keeps planners from beginning with everything that lives.
SELECT c.seq, c.job_id
FROM children AS c
CROSS JOIN LATERAL (SELECT h.seq FROM jobs_hot AS h WHERE h.seq = c.seq LIMIT 1) AS alive
WHERE c.parent = $1 AND c.life = $2 AND c.seq > $3
ORDER BY c.seq
LIMIT $4
