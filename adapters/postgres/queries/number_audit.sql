-- One mover at a time: the row of the head is locked before this runs.
WITH moved AS (
    DELETE FROM audit_inbox
    WHERE inbox_id IN (SELECT inbox_id FROM audit_inbox ORDER BY inbox_id LIMIT $1)
    RETURNING inbox_id, at, tenant, actor, action, subject, detail
), numbered AS (
    INSERT INTO audit (audit_id, at, tenant, actor, action, subject, detail)
    SELECT (SELECT last_id FROM audit_head) + row_number() OVER (ORDER BY inbox_id), at, tenant, actor, action, subject,
        detail
    FROM moved
)
UPDATE audit_head SET last_id = last_id + (SELECT count(*) FROM moved)
