INSERT INTO leases (name, holder, epoch, expires_at) VALUES (?1, ?2, 1, ?4)
ON CONFLICT (name) DO UPDATE
SET holder = excluded.holder, epoch = epoch + (holder IS NOT excluded.holder), expires_at = excluded.expires_at
WHERE holder IS NULL OR holder = excluded.holder OR expires_at <= ?3
    -- A clock that was ahead made it.
    OR expires_at > ?5
RETURNING epoch
