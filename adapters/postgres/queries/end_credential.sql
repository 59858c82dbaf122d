WITH ended AS (
    UPDATE credentials SET ends_at = LEAST(COALESCE(ends_at, $2), $2) WHERE id = $1 RETURNING ends_at, body
), audited AS (
    INSERT INTO audit_inbox (at, tenant, actor, action, subject, detail)
    SELECT $3::bigint, $4::text, $5::text, $6::text, $7::text, $8::text FROM ended
)
SELECT ends_at, body FROM ended
