//! Looking at schedules.

use clap::Args;
use lockgate_api::view;
use lockgate_proto::v1;

use crate::error::{CliError, Exit};
use crate::output::{Output, TableCell, Tone};
use crate::session::CliSession;

/// List the schedules and when each comes next
#[derive(Args, Debug)]
pub(super) struct ListSchedules {}

/// Show a schedule, its next times and what it is about
#[derive(Args, Debug)]
pub(super) struct ShowSchedule {
    /// Name of the schedule
    name: String,
}

/// List what became of a schedule's times, the latest first
#[derive(Args, Debug)]
pub(super) struct ListScheduleSlots {
    /// Name of the schedule
    name: String,

    /// Most of the page
    #[arg(long, default_value_t = 50)]
    limit: u32,

    /// Where the page before ended
    #[arg(long, default_value = "", hide_default_value = true)]
    cursor: String,
}

impl ListSchedules {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let (mut after, mut schedules) = (String::new(), Vec::new());
        loop {
            let request = v1::ListSchedulesRequest { after, limit: 1_000 };
            let page = session.answer(session.schedules().list_schedules(request).await)?;
            schedules.extend(page.schedules.into_iter().map(view::Schedule::from));
            if page.next_after.is_empty() {
                break;
            }
            after = page.next_after;
        }
        let out = session.out;
        if out.is_json() {
            out.json(&view::Schedules { schedules, next_after: None })?;
            return Ok(Exit::Success);
        }
        let row = |schedule: &view::Schedule| {
            let next = if schedule.paused {
                TableCell::text("paused").toned(Tone::Waiting)
            } else {
                out.relative_or_dash(schedule.upcoming.first().copied())
            };
            vec![
                TableCell::text(&schedule.name),
                TableCell::text(&schedule.rhythm),
                TableCell::text(&schedule.time_zone),
                TableCell::text(starts(schedule)),
                next,
                TableCell::number(&schedule.open.len()),
            ]
        };
        let rows: Vec<_> = schedules.iter().map(row).collect();
        out.line(&out.table(&["schedule", "when", "zone", "starts", "next", "open"], &rows))?;
        Ok(Exit::Success)
    }
}

impl ShowSchedule {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let response = session.schedules().get_schedule(v1::GetScheduleRequest { name: self.name }).await;
        show(&session.answer(response)?.into(), session.out)
    }
}

impl ListScheduleSlots {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let request = v1::ListSlotsRequest { name: self.name, cursor: self.cursor, limit: self.limit };
        let slots = view::Slots::from(session.answer(session.schedules().list_slots(request).await)?);
        let out = session.out;
        if out.is_json() {
            out.json(&slots)?;
            return Ok(Exit::Success);
        }
        out.line(&table(&slots.slots, out))?;
        if let Some(cursor) = &slots.next_cursor {
            out.remark(&format!("more: --cursor {cursor}"));
        }
        Ok(Exit::Success)
    }
}

/// A schedule as people look at it.
pub(super) fn show(schedule: &view::Schedule, out: Output) -> Result<Exit, CliError> {
    if out.is_json() {
        out.json(schedule)?;
        return Ok(Exit::Success);
    }
    let mut fields = vec![
        ("schedule", TableCell::text(&schedule.name)),
        ("when", TableCell::text(format!("{} ({})", schedule.rhythm, schedule.time_zone))),
        ("starts", TableCell::text(starts(schedule))),
        ("misfire", TableCell::text(&schedule.misfire)),
        ("overlap", TableCell::text(&schedule.overlap)),
        ("revision", TableCell::text(schedule.revision.to_string())),
        ("owner", TableCell::text(&schedule.actor)),
    ];
    if schedule.paused {
        fields.push(("state", TableCell::text("paused").toned(Tone::Waiting)));
    }
    for (n, at) in schedule.upcoming.iter().enumerate() {
        fields.push((if n == 0 { "next" } else { "" }, TableCell::text(out.moment(*at))));
    }
    if let Some(fault) = &schedule.fault {
        fields.push(("fault", TableCell::text(fault).toned(Tone::Bad)));
    }
    for backfill in &schedule.backfills {
        let until = out.moment(backfill.until);
        fields
            .push(("backfill", TableCell::text(format!("{} until {until}, {} at once", backfill.id, backfill.concurrency))));
    }
    out.line(&out.fields(&fields))?;
    if !schedule.open.is_empty() {
        out.line("")?;
        out.line(&table(&schedule.open, out))?;
    }
    Ok(Exit::Success)
}

pub(super) fn table(slots: &[view::Slot], out: Output) -> String {
    let row = |slot: &view::Slot| {
        let tone = match &*slot.outcome {
            "STARTED" => Tone::Good,
            "DUE" => Tone::Busy,
            "QUEUED" => Tone::Waiting,
            "SKIPPED" => Tone::Faint,
            _ => Tone::Bad,
        };
        vec![
            TableCell::text(slot.nominal.0.strftime("%Y-%m-%d %H:%M:%S").to_string()),
            TableCell::text(&slot.outcome).toned(tone),
            TableCell::text(&slot.series),
            TableCell::text(slot.job_id.as_ref().or(slot.run_id.as_ref()).map_or("-", String::as_str)),
            TableCell::clipped(slot.reason.as_deref().unwrap_or_default()),
        ]
    };
    let rows: Vec<_> = slots.iter().map(row).collect();
    out.table(&["time (utc)", "outcome", "series", "started", "reason"], &rows)
}

fn starts(schedule: &view::Schedule) -> String {
    match (&schedule.topic, &schedule.dag) {
        (Some(topic), _) => topic.clone(),
        (None, Some(dag)) => format!("dag {dag}"),
        (None, None) => String::new(),
    }
}
