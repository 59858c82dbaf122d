INSERT INTO schedule_slots (tenant, schedule, series, nominal, outcome, decided_at, body, place)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
