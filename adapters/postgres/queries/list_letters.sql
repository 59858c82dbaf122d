SELECT letter_id, CASE WHEN wanted THEN letter END
FROM (
    SELECT letter_id, letter,
        ($3::text IS NULL OR tenant = $3) AND ($4::text IS NULL OR topic = $4) AND ($5::bigint IS NULL OR priority = $5)
            AND ($6::text IS NULL OR reason = $6) AS wanted
    FROM dead_letters
    WHERE letter_id < $1
    ORDER BY letter_id DESC
    LIMIT $2
) AS looked_at
