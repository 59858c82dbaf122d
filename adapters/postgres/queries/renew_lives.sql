UPDATE jobs_hot SET life = i.life, version = version + 1
FROM UNNEST($1::bigint[], $2::text[]) AS i(seq, life)
WHERE jobs_hot.seq = i.seq
