UPDATE schedule_slots
SET outcome = ?5, decided_at = ?6, body = ?7
WHERE tenant = ?1 AND schedule = ?2 AND series = ?3 AND nominal = ?4
