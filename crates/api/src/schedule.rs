//! Schedules: from core to protobuf, and from there to JSON.

use lockgate_core::schedule::{self as core, SlotOutcome};
use lockgate_proto::v1;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::name_set::{AppliedChangeName, MisfireName, OverlapName, SlotOutcomeName};
use crate::time::Time;
use crate::{ToWire, present, text};

#[derive(Debug, Serialize, ToSchema)]
pub struct AppliedSchedules {
    pub schedules: Vec<AppliedSchedule>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct AppliedSchedule {
    pub name: String,
    pub revision: u32,
    /// created, updated or unchanged.
    #[schema(value_type = AppliedChangeName)]
    pub change: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ScheduleList)]
pub struct Schedules {
    pub schedules: Vec<Schedule>,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_after: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Schedule {
    pub name: String,
    /// 1, and one more with each change of what it says.
    pub revision: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A cron expression, or `every` and a span.
    pub rhythm: String,
    pub time_zone: String,
    pub misfire: MisfireName,
    pub overlap: OverlapName,
    /// What each time starts, if it is a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// What each time starts, if it is a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dag: Option<String>,
    pub paused: bool,
    pub actor: String,
    /// Slots that are due, at work or waiting.
    pub open: Vec<Slot>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backfills: Vec<Backfill>,
    /// The next times of its own.
    pub upcoming: Vec<Time>,
    /// Why its times cannot be worked out any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SlotList)]
pub struct Slots {
    pub slots: Vec<Slot>,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// One nominal time, and what became of it.
#[derive(Debug, Serialize, ToSchema)]
pub struct Slot {
    pub nominal: Time,
    /// Empty for the schedule's own times; `manual`, `backfill:` and its id, or `again:1` and so on for times that a clock which was
    /// ahead had decided too early.
    pub series: String,
    /// DUE, STARTED, QUEUED, SKIPPED, MISSED or REFUSED.
    pub outcome: SlotOutcomeName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    pub decided_at: Time,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Backfill {
    pub id: String,
    /// Times up to here are decided.
    pub done_until: Time,
    pub until: Time,
    pub concurrency: u32,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct BegunBackfill {
    pub id: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SchedulesBody {
    pub text: String,
    /// Named in errors.
    pub file: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackfillBody {
    /// RFC 3339. Both ends are included.
    #[schema(value_type = String, format = DateTime)]
    pub from: jiff::Timestamp,
    /// RFC 3339.
    #[schema(value_type = String, format = DateTime)]
    pub to: jiff::Timestamp,
    /// How many of its jobs or runs may be at work at once.
    #[serde(default = "one")]
    #[schema(minimum = 1, maximum = 100)]
    pub concurrency: u32,
}

const fn one() -> u32 {
    1
}

impl From<v1::PutSchedulesResponse> for AppliedSchedules {
    fn from(wire: v1::PutSchedulesResponse) -> Self {
        Self { schedules: wire.schedules.into_iter().map(AppliedSchedule::from).collect() }
    }
}

impl From<v1::put_schedules_response::Applied> for AppliedSchedule {
    fn from(wire: v1::put_schedules_response::Applied) -> Self {
        let v1::put_schedules_response::Applied { name, revision, change } = wire;
        Self { name, revision, change }
    }
}

impl From<v1::ListSchedulesResponse> for Schedules {
    fn from(wire: v1::ListSchedulesResponse) -> Self {
        Self { schedules: wire.schedules.into_iter().map(Schedule::from).collect(), next_after: present(wire.next_after) }
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
            misfire: wire.misfire.into(),
            overlap: wire.overlap.into(),
            topic: present(wire.topic),
            dag: present(wire.dag),
            paused: wire.paused,
            actor: wire.actor,
            open: wire.open.into_iter().map(Slot::from).collect(),
            backfills: wire.backfills.into_iter().map(Backfill::from).collect(),
            upcoming: wire.upcoming_ms.into_iter().map(Time::from_millis).collect(),
            fault: present(wire.fault),
        }
    }
}

impl From<v1::ListSlotsResponse> for Slots {
    fn from(wire: v1::ListSlotsResponse) -> Self {
        Self { slots: wire.slots.into_iter().map(Slot::from).collect(), next_cursor: present(wire.next_cursor) }
    }
}

impl ToWire for SlotOutcome {
    type Wire = v1::SlotOutcome;

    fn to_wire(&self) -> v1::SlotOutcome {
        match self {
            Self::Due => v1::SlotOutcome::Due,
            Self::Started => v1::SlotOutcome::Started,
            Self::Queued => v1::SlotOutcome::Queued,
            Self::Skipped => v1::SlotOutcome::Skipped,
            Self::Missed => v1::SlotOutcome::Missed,
            Self::Refused => v1::SlotOutcome::Refused,
        }
    }
}

impl ToWire for core::Slot {
    type Wire = v1::Slot;

    fn to_wire(&self) -> v1::Slot {
        let (job_id, run_id) = match &self.target {
            Some(core::Target::Job(id)) => (id.to_string(), String::new()),
            Some(core::Target::Run(id)) => (String::new(), id.to_string()),
            None => Default::default(),
        };
        v1::Slot {
            nominal_ms: self.key.nominal.as_millis(),
            series: self.key.series.0.to_string(),
            outcome: self.outcome.to_wire().into(),
            reason: text(self.reason.as_deref()),
            job_id,
            run_id,
            decided_at_ms: self.decided_at.as_millis(),
        }
    }
}

impl From<v1::Slot> for Slot {
    fn from(wire: v1::Slot) -> Self {
        Self {
            outcome: wire.outcome().into(),
            nominal: Time::from_millis(wire.nominal_ms),
            series: wire.series,
            reason: present(wire.reason),
            job_id: present(wire.job_id),
            run_id: present(wire.run_id),
            decided_at: Time::from_millis(wire.decided_at_ms),
        }
    }
}

impl ToWire for core::Backfill {
    type Wire = v1::Backfill;

    fn to_wire(&self) -> v1::Backfill {
        v1::Backfill {
            id: self.id.to_string(),
            done_until_ms: self.done_until.as_millis(),
            until_ms: self.until.as_millis(),
            concurrency: self.concurrency,
        }
    }
}

impl From<v1::Backfill> for Backfill {
    fn from(wire: v1::Backfill) -> Self {
        Self {
            id: wire.id,
            done_until: Time::from_millis(wire.done_until_ms),
            until: Time::from_millis(wire.until_ms),
            concurrency: wire.concurrency,
        }
    }
}

impl From<v1::BackfillScheduleResponse> for BegunBackfill {
    fn from(wire: v1::BackfillScheduleResponse) -> Self {
        Self { id: wire.id }
    }
}
