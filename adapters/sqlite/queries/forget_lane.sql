DELETE FROM lanes
WHERE lane_id = ?1
    AND NOT EXISTS (SELECT 1 FROM jobs_hot WHERE state = 2 AND jobs_hot.lane_id = ?1)
