SELECT run_id, version, state >= 4 FROM runs WHERE run_id = ANY($1::text[]) ORDER BY run_id FOR UPDATE
