DELETE FROM run_news
USING unnest($1::bigint[], $2::text[]) AS i(news_no, run_id)
WHERE run_news.news_no = i.news_no AND run_news.run_id = i.run_id
