WITH crons AS (
    DELETE FROM schedules WHERE tenant = $1 RETURNING name
), slots AS (
    DELETE FROM schedule_slots WHERE tenant = $1 RETURNING nominal
), definitions AS (
    DELETE FROM dags WHERE tenant = $1 RETURNING name
), keys AS (
    DELETE FROM idempotency WHERE tenant = $1 RETURNING key
), start_keys AS (
    DELETE FROM run_keys WHERE tenant = $1 RETURNING key
), known_work AS (
    DELETE FROM memos WHERE tenant = $1 RETURNING key
), counts AS (
    DELETE FROM tallies WHERE tenant = $1 RETURNING shard
)
SELECT (SELECT count(*) FROM crons) + (SELECT count(*) FROM slots) + (SELECT count(*) FROM definitions)
    + (SELECT count(*) FROM keys) + (SELECT count(*) FROM start_keys) + (SELECT count(*) FROM known_work)
    + (SELECT count(*) FROM counts)
