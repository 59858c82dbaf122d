DELETE FROM duties
USING unnest($1::text[], $2::bigint[]) AS i(kind, seq)
WHERE duties.kind = i.kind AND duties.seq = i.seq
