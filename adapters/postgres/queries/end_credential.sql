WITH ended AS (
    UPDATE credentials AS c SET ends_at = LEAST(COALESCE(c.ends_at, $2::bigint), $2::bigint)
    WHERE c.id = $1
      AND ($3::text IS NULL OR EXISTS (
        SELECT 1 FROM credentials AS o WHERE o.id = $3 AND (o.ends_at IS NULL OR o.ends_at > $4::bigint)
      ))
    RETURNING c.id
)
INSERT INTO audit_inbox (at, tenant, actor, action, subject, detail)
SELECT $5::bigint, $6::text, $7::text, $8::text, $9::text, $10::text FROM ended
