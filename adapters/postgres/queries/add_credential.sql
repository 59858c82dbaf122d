WITH added AS (
    INSERT INTO credentials (id, ends_at, body) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING RETURNING id
), audited AS (
    INSERT INTO audit_inbox (at, tenant, actor, action, subject, detail)
    SELECT $4::bigint, $5::text, $6::text, $7::text, $8::text, $9::text FROM added
)
SELECT id FROM added
