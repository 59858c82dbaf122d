CREATE TABLE schedules (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    version BIGINT NOT NULL CHECK (version > 0),
    wakes_at BIGINT,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- T-1: a time is decided once. Slots outlive their schedule. `place` is where a slot stands in the list of its schedule.
-- Outcomes are numbered in the order of Outcome: 0 DUE, 1 STARTED, 2 QUEUED, 3 SKIPPED, 4 MISSED, 5 REFUSED.
CREATE TABLE schedule_slots (
    tenant TEXT NOT NULL,
    schedule TEXT NOT NULL,
    series TEXT NOT NULL,
    nominal BIGINT NOT NULL,
    place BIGINT NOT NULL,
    outcome BIGINT NOT NULL CHECK (outcome BETWEEN 0 AND 5),
    decided_at BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant, schedule, series, nominal)
);

CREATE INDEX slots_listed ON schedule_slots (tenant, schedule, place);
