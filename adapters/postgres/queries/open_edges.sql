SELECT edge, expires_at FROM edges WHERE closed_at IS NULL
