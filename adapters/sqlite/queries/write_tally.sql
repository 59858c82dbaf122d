INSERT INTO tallies (tenant, live, ended, runs, stored_bytes) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (tenant) DO UPDATE
SET live = live + excluded.live, ended = ended + excluded.ended, runs = runs + excluded.runs,
    stored_bytes = stored_bytes + excluded.stored_bytes
