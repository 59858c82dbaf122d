SELECT jobs_hot.seq, jobs_hot.version, jobs_hot.state, jobs.hash, jobs_hot.life, jobs.request, jobs.payload
FROM jobs_hot
JOIN jobs ON jobs.seq = jobs_hot.seq
WHERE jobs_hot.deadline_at IS NOT NULL
    AND (jobs_hot.deadline_at, jobs_hot.seq) > (?1, ?2)
    AND jobs_hot.deadline_at <= ?3
ORDER BY jobs_hot.deadline_at, jobs_hot.seq
LIMIT ?4
