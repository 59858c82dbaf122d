UPDATE book
SET last_seq = ?1,
    live_critical = ?2, live_high = ?3, live_default = ?4, live_low = ?5,
    dead_critical = ?6, dead_high = ?7, dead_default = ?8, dead_low = ?9,
    ended = ?10
