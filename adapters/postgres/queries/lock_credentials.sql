-- In the order of their ids, so that two that lock the same ones do not wait for each other.
SELECT c.id
FROM unnest($1::text[]) AS i(id)
JOIN credentials AS c ON c.id = i.id
ORDER BY c.id
FOR UPDATE OF c
