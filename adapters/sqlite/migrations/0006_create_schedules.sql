CREATE TABLE schedules (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version > 0),
    wakes_at INTEGER,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT;

CREATE INDEX schedules_waking ON schedules (wakes_at, tenant, name) WHERE wakes_at IS NOT NULL;

-- T-1: a time is decided once. Slots outlive their schedule. `place` is where a slot stands in the list of its schedule.
-- Outcomes are numbered in the order of Outcome: 0 DUE, 1 STARTED, 2 QUEUED, 3 SKIPPED, 4 MISSED, 5 REFUSED.
CREATE TABLE schedule_slots (
    tenant TEXT NOT NULL,
    schedule TEXT NOT NULL,
    series TEXT NOT NULL,
    nominal INTEGER NOT NULL,
    place INTEGER NOT NULL,
    outcome INTEGER NOT NULL CHECK (outcome BETWEEN 0 AND 5),
    decided_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant, schedule, series, nominal)
) STRICT, WITHOUT ROWID;

CREATE INDEX slots_listed ON schedule_slots (tenant, schedule, place);
-- Those that may be forgotten one day.
CREATE INDEX slots_decided ON schedule_slots (decided_at, tenant, schedule, series, nominal) WHERE outcome NOT IN (0, 2);
