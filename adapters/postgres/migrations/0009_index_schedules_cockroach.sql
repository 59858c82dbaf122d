-- Indexes that grow with time would all be written to one range.
CREATE INDEX schedules_waking ON schedules (wakes_at, tenant, name) USING HASH WHERE wakes_at IS NOT NULL;
-- Those that may be forgotten one day.
CREATE INDEX slots_decided ON schedule_slots (decided_at, tenant, schedule, series, nominal) USING HASH
    WHERE outcome NOT IN (0, 2);
