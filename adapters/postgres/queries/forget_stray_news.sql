-- Told late, by the last jobs of a run that is gone.
DELETE FROM run_news
WHERE at < (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)) - $2
    AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.run_id = run_news.run_id)
