INSERT INTO run_nodes (run_no, node, item, version, body) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (run_no, node, item) DO UPDATE SET version = excluded.version, body = excluded.body
