UPDATE edges SET closed_at = ?3
WHERE edge = ?1 AND expires_at = ?2 AND closed_at IS NULL AND expires_at <= ?4
