INSERT INTO audit_blocks (block_no, first_id, last_id, rows, previous, seal, sealed_at)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
WHERE ?1 = (SELECT COALESCE(MAX(block_no), 0) + 1 FROM audit_blocks)
    AND ?5 = COALESCE((SELECT seal FROM audit_blocks WHERE block_no = ?1 - 1), zeroblob(32))
