SELECT letter_id, tenant, topic, priority, reason, letter
FROM dead_letters
WHERE letter_id < ?1
ORDER BY letter_id DESC
