SELECT i.n, count(c.seq), count(h.seq), max(h.seq)
FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS i(parent, life, n)
LEFT JOIN children AS c ON c.parent = i.parent AND c.life = i.life
LEFT JOIN jobs_hot AS h ON h.seq = c.seq
GROUP BY i.n
ORDER BY i.n
