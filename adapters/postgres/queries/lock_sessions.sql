SELECT 1 FROM sessions WHERE session = ANY($1::text[]) ORDER BY session FOR SHARE
