//! What people tell schedules.

use clap::Args;
use jiff::Timestamp;
use lockgate_api::view;
use lockgate_proto::v1;

use super::list::{show, table};
use crate::args;
use crate::error::{CliError, Exit};
use crate::output::Tone;
use crate::session::CliSession;

/// Start nothing by itself until it is resumed; what runs goes on
#[derive(Args, Debug)]
pub(super) struct PauseSchedule {
    /// Name of the schedule
    name: String,
}

/// Let it go on; times that fell into the pause are not made up for
#[derive(Args, Debug)]
pub(super) struct ResumeSchedule {
    /// Name of the schedule
    name: String,
}

/// Start once, now, whatever the times say
#[derive(Args, Debug)]
pub(super) struct Trigger {
    /// Name of the schedule
    name: String,
}

/// Remove a schedule; what runs goes on
#[derive(Args, Debug)]
pub(super) struct Remove {
    /// Name of the schedule
    name: String,
}

/// Make up for the times of a span that has passed
#[derive(Args, Debug)]
pub(super) struct BackfillSchedule {
    /// Name of the schedule
    name: String,

    /// The first moment of the span
    #[arg(long, value_parser = args::timestamp, value_name = "TIME")]
    from: Timestamp,

    /// The last moment of the span
    #[arg(long, value_parser = args::timestamp, value_name = "TIME")]
    to: Timestamp,

    /// How many of its jobs or runs may be at work at once
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), value_name = "COUNT")]
    concurrency: u32,
}

/// Start no more of a backfill; what it started goes on
#[derive(Args, Debug)]
pub(super) struct CancelBackfill {
    /// Name of the schedule
    name: String,

    /// Id of the backfill
    id: String,
}

impl PauseSchedule {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let response = session.schedules().pause_schedule(v1::PauseScheduleRequest { name: self.name }).await;
        show(&session.answer(response)?.into(), session.out)
    }
}

impl ResumeSchedule {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let response = session.schedules().resume_schedule(v1::ResumeScheduleRequest { name: self.name }).await;
        show(&session.answer(response)?.into(), session.out)
    }
}

impl Trigger {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let response = session.schedules().trigger_schedule(v1::TriggerScheduleRequest { name: self.name }).await;
        let slot = view::Slot::from(session.answer(response)?);
        if session.out.is_json() {
            session.out.json(&slot)?;
        } else {
            session.out.line(&table(&[slot], session.out))?;
        }
        Ok(Exit::Success)
    }
}

impl Remove {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let request = v1::RemoveScheduleRequest { name: self.name.clone() };
        session.answer(session.schedules().remove_schedule(request).await)?;
        if session.out.is_json() {
            session.out.json(&serde_json::json!({ "name": self.name, "removed": true }))?;
        } else {
            session.out.line(&format!("{}  {}", self.name, session.out.paint("removed", Tone::Faint)))?;
        }
        Ok(Exit::Success)
    }
}

impl BackfillSchedule {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let request = v1::BackfillScheduleRequest {
            name: self.name.clone(),
            from_ms: self.from.as_millisecond(),
            to_ms: self.to.as_millisecond(),
            concurrency: self.concurrency,
        };
        let begun = session.answer(session.schedules().backfill_schedule(request).await)?;
        let out = session.out;
        let begun = view::BegunBackfill::from(begun);
        if out.is_json() {
            out.json(&begun)?;
        } else {
            out.line(&format!("{}  {}", begun.id, out.paint("under way", Tone::Busy)))?;
            out.remark(&format!("follow it with `lockgate schedule slots {}`", self.name));
        }
        Ok(Exit::Success)
    }
}

impl CancelBackfill {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let request = v1::CancelBackfillRequest { name: self.name, id: self.id.clone() };
        session.answer(session.schedules().cancel_backfill(request).await)?;
        if session.out.is_json() {
            session.out.json(&serde_json::json!({ "id": self.id, "cancelled": true }))?;
        } else {
            session.out.line(&format!("{}  {}", self.id, session.out.paint("cancelled", Tone::Faint)))?;
        }
        Ok(Exit::Success)
    }
}
