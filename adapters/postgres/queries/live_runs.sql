SELECT run_id FROM runs WHERE state < 4 AND run_id > $1 ORDER BY run_id LIMIT $2
