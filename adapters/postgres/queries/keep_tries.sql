INSERT INTO placing_tries (one, tries) VALUES (1, $1)
ON CONFLICT (one) DO UPDATE SET tries = excluded.tries
RETURNING one
