SELECT told.seq, told.version, told.state, told.hash, told.life, told.request, told.result, told.news_no, told.run_id,
    told.head, told.child_version, told.child_state, told.child_wakes_at
FROM unnest($1::text[]) AS i(run_id)
CROSS JOIN LATERAL (
    SELECT n.news_no, n.run_id, j.seq, j.version, j.state, j.hash, j.life, j.request, j.result, c.head,
        c.version AS child_version, c.state AS child_state, c.wakes_at AS child_wakes_at
    FROM run_news AS n
    LEFT JOIN LATERAL (
        SELECT seq, version, state, hash, life, request, result FROM jobs_done WHERE jobs_done.job_id = n.job_id
        UNION ALL
        SELECT seq, version, state, hash, life, request, NULL FROM jobs_hot WHERE jobs_hot.job_id = n.job_id
    ) AS j ON j.seq = n.seq
    LEFT JOIN runs AS c ON c.run_id = n.child
    WHERE n.run_id = i.run_id AND n.news_no > $2 AND (j.seq IS NOT NULL OR c.head IS NOT NULL)
    ORDER BY n.news_no
    LIMIT $3
) AS told
ORDER BY told.news_no
LIMIT $3
