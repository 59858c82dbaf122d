//! Schedules.

use lockgate_proto::v1;
use serde::Serialize;

use super::Time;
use super::convert::{present, time};

#[derive(Debug, Serialize)]
pub(crate) struct AppliedSchedules {
    pub(crate) schedules: Vec<AppliedSchedule>,
}

#[derive(Debug, Serialize)]
pub(crate) struct AppliedSchedule {
    pub(crate) name: String,
    pub(crate) revision: u32,
    pub(crate) change: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct Schedules {
    pub(crate) schedules: Vec<Schedule>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Schedule {
    pub(crate) name: String,
    pub(crate) revision: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    pub(crate) rhythm: String,
    pub(crate) time_zone: String,
    pub(crate) misfire: String,
    pub(crate) overlap: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) topic: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dag: Option<String>,
    pub(crate) paused: bool,
    pub(crate) actor: String,
    pub(crate) open: Vec<Slot>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) backfills: Vec<Backfill>,
    pub(crate) upcoming: Vec<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fault: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Slots {
    pub(crate) slots: Vec<Slot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Slot {
    pub(crate) nominal: Option<Time>,
    pub(crate) series: String,
    pub(crate) outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) job_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run_id: Option<String>,
    pub(crate) decided_at: Option<Time>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Backfill {
    pub(crate) id: String,
    pub(crate) done_until: Option<Time>,
    pub(crate) until: Option<Time>,
    pub(crate) concurrency: u32,
}

#[derive(Debug, Serialize)]
pub(crate) struct BegunBackfill {
    pub(crate) id: String,
}

impl From<v1::PutSchedulesResponse> for AppliedSchedules {
    fn from(wire: v1::PutSchedulesResponse) -> Self {
        let one = |applied: v1::put_schedules_response::Applied| AppliedSchedule {
            name: applied.name,
            revision: applied.revision,
            change: applied.change,
        };
        Self { schedules: wire.schedules.into_iter().map(one).collect() }
    }
}

impl From<v1::Schedule> for Schedule {
    fn from(wire: v1::Schedule) -> Self {
        Self {
            name: wire.name,
            revision: wire.revision,
            description: present(wire.description),
            rhythm: wire.rhythm,
            time_zone: wire.time_zone,
            misfire: wire.misfire,
            overlap: wire.overlap,
            topic: present(wire.topic),
            dag: present(wire.dag),
            paused: wire.paused,
            actor: wire.actor,
            open: wire.open.into_iter().map(Slot::from).collect(),
            backfills: wire.backfills.into_iter().map(Backfill::from).collect(),
            upcoming: wire.upcoming_ms.into_iter().filter_map(time).collect(),
            fault: present(wire.fault),
        }
    }
}

impl From<v1::ListSlotsResponse> for Slots {
    fn from(wire: v1::ListSlotsResponse) -> Self {
        Self { slots: wire.slots.into_iter().map(Slot::from).collect(), next_cursor: present(wire.next_cursor) }
    }
}

impl From<v1::Slot> for Slot {
    fn from(wire: v1::Slot) -> Self {
        let outcome = wire.outcome().as_str_name();
        Self {
            nominal: time(wire.nominal_ms),
            outcome: outcome.strip_prefix("SLOT_OUTCOME_").unwrap_or(outcome),
            series: wire.series,
            reason: present(wire.reason),
            job_id: present(wire.job_id),
            run_id: present(wire.run_id),
            decided_at: time(wire.decided_at_ms),
        }
    }
}

impl From<v1::Backfill> for Backfill {
    fn from(wire: v1::Backfill) -> Self {
        Self { id: wire.id, done_until: time(wire.done_until_ms), until: time(wire.until_ms), concurrency: wire.concurrency }
    }
}
