SELECT lanes.key, counted.waiting
FROM (SELECT lane_id, COUNT(*) AS waiting FROM jobs_hot WHERE state = 2 AND due_at <= ?1 GROUP BY lane_id) AS counted
JOIN lanes ON lanes.lane_id = counted.lane_id
