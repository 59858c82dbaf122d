-- Heads and nodes as one state: a head has a version, a node has a number.
SELECT run_id, head AS body, version, state, wakes_at, NULL::bigint AS node, NULL::bigint AS item
FROM runs WHERE run_id = ANY($1::text[])
UNION ALL
SELECT run_id, body, NULL, NULL, NULL, node, item
FROM run_nodes WHERE run_id = ANY($1::text[]) AND version > $2
