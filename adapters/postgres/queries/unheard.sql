SELECT run_id
FROM (
    SELECT run_id, row_number() OVER (ORDER BY at, news_no) AS place
    FROM (
        SELECT run_id, at, news_no
        FROM run_news
        WHERE at <= (SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)) - $2
            AND (
                run_id LIKE 'run-saga-%'
                OR EXISTS (SELECT 1 FROM runs WHERE runs.run_id = run_news.run_id)
            )
        ORDER BY at, news_no
        LIMIT $3
    ) AS oldest
) AS placed
GROUP BY run_id
ORDER BY min(place)
LIMIT $4
