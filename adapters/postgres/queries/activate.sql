WITH moment AS MATERIALIZED (
    SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now
), changed AS (
    UPDATE in_force SET version = version + 1, id = $3 WHERE kind = $2 AND version = $4 RETURNING kind, version, id
), kept AS (
    -- An empty text is one that is kept elsewhere; the first that is known stays for ever.
    INSERT INTO snapshots (kind, id, text) SELECT kind, id, $5 FROM changed
    ON CONFLICT (kind, id) DO UPDATE SET text = excluded.text WHERE snapshots.text = ''
), recorded AS (
    INSERT INTO activations (kind, version, id, actor, at)
    SELECT kind, version, id, $6, (SELECT now FROM moment) FROM changed
), audited AS (
    INSERT INTO audit_inbox (at, tenant, actor, action, subject, detail)
    SELECT $7::bigint, $8::text, $9::text, $10::text, $11::text, $12::text FROM changed
)
SELECT version FROM changed
