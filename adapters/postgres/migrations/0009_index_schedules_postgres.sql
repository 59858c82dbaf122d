-- Names are compared byte by byte, whatever language the database speaks.
ALTER TABLE schedules ALTER COLUMN tenant TYPE TEXT COLLATE "C", ALTER COLUMN name TYPE TEXT COLLATE "C";
ALTER TABLE schedule_slots
    ALTER COLUMN tenant TYPE TEXT COLLATE "C",
    ALTER COLUMN schedule TYPE TEXT COLLATE "C",
    ALTER COLUMN series TYPE TEXT COLLATE "C";
ALTER TABLE credentials ALTER COLUMN id TYPE TEXT COLLATE "C";

CREATE INDEX schedules_waking ON schedules (wakes_at, tenant, name) WHERE wakes_at IS NOT NULL;
-- Those that may be forgotten one day.
CREATE INDEX slots_decided ON schedule_slots (decided_at, tenant, schedule, series, nominal) WHERE outcome NOT IN (0, 2);

-- Every turn moves its schedule in the index: dead entries are swept before they slow the look for the next one.
ALTER TABLE schedules SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
