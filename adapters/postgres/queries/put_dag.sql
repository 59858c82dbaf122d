-- One at a time: the lock is held before this runs. The latest version as it is now, added or not.
WITH latest AS MATERIALIZED (
    SELECT tenant, name, version, snapshot, actor, at, pins, text
    FROM dags WHERE tenant = $2 AND name = $3 ORDER BY version DESC LIMIT 1
), added AS (
    INSERT INTO dags (tenant, name, version, snapshot, actor, at, pins, text)
    SELECT $2, $3, COALESCE((SELECT version FROM latest), 0) + 1, $4, $5,
        COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint), $6, $7
    WHERE NOT EXISTS (SELECT 1 FROM latest WHERE text = $7)
    RETURNING tenant, name, version, snapshot, actor, at, pins, text
), audited AS (
    INSERT INTO audit_inbox (at, tenant, actor, action, subject, detail)
    SELECT $8::bigint, $9::text, $10::text, $11::text, $12::text, $13::text FROM added
)
SELECT tenant, name, version, snapshot, actor, at, pins, text FROM added
UNION ALL
SELECT tenant, name, version, snapshot, actor, at, pins, text FROM latest WHERE text = $7
