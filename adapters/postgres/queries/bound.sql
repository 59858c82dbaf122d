SELECT i.session, h.job_id
FROM unnest($1::text[]) WITH ORDINALITY AS i(session, n)
CROSS JOIN LATERAL (
    SELECT job_id, seq FROM jobs_hot WHERE jobs_hot.session = i.session ORDER BY seq
) AS h
ORDER BY i.n, h.seq
