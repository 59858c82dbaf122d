INSERT INTO audit_blocks (block_no, first_id, last_id, row_count, previous, seal, sealed_at)
SELECT $1::bigint, $2::bigint, $3::bigint, $4::bigint, $5::bytea, $6::bytea, $7::bigint
WHERE $1 = (SELECT COALESCE(max(block_no), 0) + 1 FROM audit_blocks)
    AND ($1 = 1 AND $5 = $8::bytea OR $5 = (SELECT seal FROM audit_blocks WHERE block_no = $1 - 1))
ON CONFLICT (block_no) DO NOTHING
RETURNING block_no
