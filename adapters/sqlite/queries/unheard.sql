SELECT run_id
FROM run_news
WHERE at <= ?1
    AND (run_id LIKE 'run-saga-%' OR EXISTS (SELECT 1 FROM runs WHERE runs.run_id = run_news.run_id))
ORDER BY at, news_no
