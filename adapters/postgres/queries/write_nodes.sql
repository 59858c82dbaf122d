INSERT INTO run_nodes (run_id, node, item, version, body)
SELECT i.run_id, i.node, i.item, i.version, i.body
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[]) AS i(run_id, node, item, version, body)
ON CONFLICT (run_id, node, item) DO UPDATE SET version = excluded.version, body = excluded.body
