SELECT place
FROM schedule_slots
WHERE tenant = ?1 AND schedule = ?2 AND place BETWEEN ?3 AND ?4
ORDER BY place DESC
LIMIT 1
