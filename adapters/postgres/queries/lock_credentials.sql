-- In the order in which the ids come.
SELECT c.id
FROM unnest($1::text[]) AS i(id)
JOIN credentials AS c ON c.id = i.id
FOR UPDATE OF c
