SELECT place, body FROM schedule_slots WHERE tenant = $1 AND schedule = $2 AND place < $3 ORDER BY place DESC LIMIT $4
