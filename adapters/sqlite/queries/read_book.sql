SELECT last_seq,
    live_critical, live_high, live_default, live_low,
    dead_critical, dead_high, dead_default, dead_low,
    ended
FROM book
