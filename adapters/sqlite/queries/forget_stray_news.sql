DELETE FROM run_news
WHERE at < ?1 AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.run_id = run_news.run_id)
