DELETE FROM memos
WHERE until <= (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))
