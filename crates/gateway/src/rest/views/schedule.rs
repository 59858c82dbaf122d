//! Schedules as JSON.

use lockgate_core::schedule::{self as core};
use lockgate_engine::{AppliedSchedule, ScheduleView};
use lockgate_ports::Listing;
use serde::Serialize;
use utoipa::ToSchema;

use super::names::{MisfireName, OverlapName, SlotOutcomeName};
use super::{Name, Time};
use crate::queries::{cursor_text, next_name};
use crate::schedules::{change, rhythm, work};

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct AppliedSchedules {
    schedules: Vec<Applied>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = AppliedSchedule)]
struct Applied {
    name: String,
    revision: u32,
    /// created, updated or unchanged.
    change: &'static str,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ScheduleList)]
pub(in crate::rest) struct Schedules {
    schedules: Vec<Schedule>,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_after: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Schedule {
    name: String,
    /// 1, and one more with each change of what it says.
    revision: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// A cron expression, or `every` and a span.
    rhythm: String,
    time_zone: String,
    misfire: MisfireName,
    overlap: OverlapName,
    /// What each time starts, if it is a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
    /// What each time starts, if it is a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    dag: Option<String>,
    paused: bool,
    actor: String,
    /// Slots that are due, at work or waiting.
    open: Vec<Slot>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    backfills: Vec<Backfill>,
    /// The next times of its own.
    upcoming: Vec<Time>,
    /// Why its times cannot be worked out any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SlotList)]
pub(in crate::rest) struct Slots {
    slots: Vec<Slot>,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// One nominal time, and what became of it.
#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Slot {
    nominal: Time,
    /// Empty for the schedule's own times; `manual`, `backfill:` and its id, or `again:1` and so on for times that a clock which was
    /// ahead had decided too early.
    series: String,
    /// DUE, STARTED, QUEUED, SKIPPED, MISSED or REFUSED.
    outcome: SlotOutcomeName,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<String>,
    decided_at: Time,
}

#[derive(Serialize, ToSchema)]
struct Backfill {
    id: String,
    /// Times up to here are decided.
    done_until: Time,
    until: Time,
    concurrency: u32,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct BegunBackfill {
    pub(in crate::rest) id: String,
}

impl From<Vec<AppliedSchedule>> for AppliedSchedules {
    fn from(applied: Vec<AppliedSchedule>) -> Self {
        let one = |applied: AppliedSchedule| Applied {
            name: applied.name.to_string(),
            revision: applied.revision,
            change: change(applied.changed),
        };
        Self { schedules: applied.into_iter().map(one).collect() }
    }
}

impl Schedules {
    pub(in crate::rest) fn new(views: &[ScheduleView], limit: usize) -> Self {
        let next = Some(next_name(views, limit)).filter(|next| !next.is_empty());
        Self { schedules: views.iter().map(Schedule::from).collect(), next_after: next }
    }
}

impl From<&ScheduleView> for Schedule {
    fn from(view: &ScheduleView) -> Self {
        let (schedule, spec) = (&view.schedule, &view.schedule.spec);
        let (topic, dag) = work(spec);
        Self {
            name: schedule.name.to_string(),
            revision: schedule.revision,
            description: spec.description.as_ref().map(ToString::to_string),
            rhythm: rhythm(spec),
            time_zone: spec.time_zone.to_string(),
            misfire: Name(spec.misfire),
            overlap: Name(spec.overlap),
            topic,
            dag,
            paused: schedule.paused_at.is_some(),
            actor: schedule.actor.to_string(),
            open: schedule.open.iter().map(Slot::from).collect(),
            backfills: schedule.backfills.iter().map(Backfill::from).collect(),
            upcoming: view.upcoming.iter().map(|at| Time(*at)).collect(),
            fault: view.fault.clone(),
        }
    }
}

impl From<Listing<core::Slot>> for Slots {
    fn from(listing: Listing<core::Slot>) -> Self {
        Self { slots: listing.items.iter().map(Slot::from).collect(), next_cursor: listing.next.map(cursor_text) }
    }
}

impl From<&core::Slot> for Slot {
    fn from(slot: &core::Slot) -> Self {
        let (job_id, run_id) = match &slot.target {
            Some(core::Target::Job(id)) => (Some(id.to_string()), None),
            Some(core::Target::Run(id)) => (None, Some(id.to_string())),
            None => (None, None),
        };
        Self {
            nominal: Time(slot.key.nominal),
            series: slot.key.series.0.to_string(),
            outcome: Name(slot.outcome),
            reason: slot.reason.as_ref().map(ToString::to_string),
            job_id,
            run_id,
            decided_at: Time(slot.decided_at),
        }
    }
}

impl From<&core::Backfill> for Backfill {
    fn from(backfill: &core::Backfill) -> Self {
        Self {
            id: backfill.id.to_string(),
            done_until: Time(backfill.done_until),
            until: Time(backfill.until),
            concurrency: backfill.concurrency,
        }
    }
}
