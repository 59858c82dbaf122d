UPDATE credentials SET ends_at = MIN(COALESCE(ends_at, ?2), ?2)
WHERE id = ?1
  AND (?3 IS NULL OR EXISTS (
    SELECT 1 FROM credentials AS other WHERE other.id = ?3 AND (other.ends_at IS NULL OR other.ends_at > ?4)
  ))
