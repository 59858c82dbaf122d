UPDATE edges SET closed_at = ?3
WHERE edge = ?1 AND expires_at = ?2 AND closed_at IS NULL 
    -- Or a clock that was ahead made it.
    AND (expires_at <= ?4 OR expires_at > ?5)
