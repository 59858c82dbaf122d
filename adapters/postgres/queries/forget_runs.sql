-- Whole runs, oldest end first, until they and their nodes are as many rows as asked for.
, sized AS (
    SELECT run_id, version, ended_at,
        1 + (SELECT count(*) FROM run_nodes WHERE run_nodes.run_id = old.run_id) AS row_count
    FROM old
), placed AS (
    SELECT run_id, version, row_count, sum(row_count) OVER (ORDER BY ended_at, run_id) - row_count AS rows_before
    FROM sized
), gone AS (
    DELETE FROM runs USING placed
    WHERE placed.rows_before < (SELECT most FROM bound) AND runs.run_id = placed.run_id AND runs.version = placed.version
    RETURNING runs.run_id, placed.row_count
), nodes AS (
    DELETE FROM run_nodes USING gone WHERE run_nodes.run_id = gone.run_id
), news AS (
    DELETE FROM run_news USING gone WHERE run_news.run_id = gone.run_id
), keys AS (
    DELETE FROM run_keys USING gone WHERE run_keys.run_id = gone.run_id
)
SELECT count(*), COALESCE(sum(row_count), 0)::bigint FROM gone
