//! Schedules.

use lockgate_api::ToWire;
use lockgate_core::schedule::{Rhythm, ScheduledWork, Slot, Spec};
use lockgate_engine::{AppliedAs, AppliedSchedule, ScheduleView};
use lockgate_ports::Listing;
use lockgate_proto::v1;

use super::next;
use crate::queries::next_name;

pub(crate) fn applied(applied: Vec<AppliedSchedule>) -> v1::PutSchedulesResponse {
    let one = |applied: AppliedSchedule| v1::put_schedules_response::Applied {
        name: applied.name.to_string(),
        revision: applied.revision,
        change: change(applied.changed).to_owned(),
    };
    v1::PutSchedulesResponse { schedules: applied.into_iter().map(one).collect() }
}

pub(crate) fn schedules(views: &[ScheduleView], limit: usize) -> v1::ListSchedulesResponse {
    v1::ListSchedulesResponse { next_after: next_name(views, limit), schedules: views.iter().map(schedule).collect() }
}

pub(crate) fn schedule(view: &ScheduleView) -> v1::Schedule {
    let (schedule, spec) = (&view.schedule, &view.schedule.spec);
    let (topic, dag) = work(spec);
    v1::Schedule {
        name: schedule.name.to_string(),
        revision: schedule.revision,
        description: spec.description.as_deref().unwrap_or_default().to_owned(),
        rhythm: rhythm(spec),
        time_zone: spec.time_zone.to_string(),
        misfire: spec.misfire.as_str().to_owned(),
        overlap: spec.overlap.as_str().to_owned(),
        topic: topic.unwrap_or_default(),
        dag: dag.unwrap_or_default(),
        paused: schedule.paused_at.is_some(),
        actor: schedule.actor.to_string(),
        open: schedule.open.iter().map(ToWire::to_wire).collect(),
        backfills: schedule.backfills.iter().map(ToWire::to_wire).collect(),
        upcoming_ms: view.upcoming.iter().map(|at| at.as_millis()).collect(),
        fault: view.fault.clone().unwrap_or_default(),
    }
}

pub(crate) fn slots(listing: &Listing<Slot>) -> v1::ListSlotsResponse {
    v1::ListSlotsResponse { slots: listing.items.iter().map(ToWire::to_wire).collect(), next_cursor: next(listing.next) }
}

pub(crate) fn begun(id: &impl ToString) -> v1::BackfillScheduleResponse {
    v1::BackfillScheduleResponse { id: id.to_string() }
}

const fn change(applied: AppliedAs) -> &'static str {
    match applied {
        AppliedAs::Created => "created",
        AppliedAs::Updated => "updated",
        AppliedAs::Unchanged => "unchanged",
    }
}

/// When, as a person wrote it.
fn rhythm(spec: &Spec) -> String {
    match &spec.rhythm {
        Rhythm::Cron(text) => text.to_string(),
        Rhythm::EveryMs(ms) => format!("every {}", span(*ms)),
    }
}

/// What each time starts: a topic, or a DAG.
fn work(spec: &Spec) -> (Option<String>, Option<String>) {
    match &spec.work {
        ScheduledWork::Job(job) => (Some(job.topic.to_string()), None),
        ScheduledWork::Dag(dag) => {
            (None, Some(dag.version.map_or_else(|| dag.name.to_string(), |v| format!("{}@{v}", dag.name))))
        }
    }
}

/// In the largest unit that fits evenly.
fn span(ms: u64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let fit = units.into_iter().find(|(unit, _)| ms.is_multiple_of(*unit));
    fit.map_or_else(|| format!("{ms}ms"), |(unit, name)| format!("{}{name}", ms / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_in_the_largest_even_unit() {
        for (ms, text) in [(900_000, "15m"), (90_000, "90s"), (86_400_000, "1d"), (1_500, "1500ms")] {
            assert_eq!(span(ms), text);
        }
    }
}
