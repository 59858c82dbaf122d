INSERT INTO audit_inbox (at, tenant, actor, action, subject, detail)
SELECT i.at, i.tenant, i.actor, i.action, i.subject, i.detail
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
    AS i(at, tenant, actor, action, subject, detail)
