//! `lockgate watch`: the events of a job as they happen.

use clap::Args;
use lockgate_api::view;
use lockgate_proto::v1;
use lockgate_proto::v1::watch_job_response::Item;

use super::end_of;
use crate::error::{CliError, Exit};
use crate::follow::follow;
use crate::output::{Output, Tone, clock_time};
use crate::session::CliSession;

/// As wide as the longest kind of event, `waiting_for_children`.
const KIND_CHARS: usize = 20;

/// Follow the events of a job until it ends
#[derive(Args, Debug)]
#[command(after_long_help = "Exits with 0 when the job succeeded and with 2 when it ended otherwise.")]
pub(crate) struct WatchArgs {
    /// Id of the job
    #[arg(value_name = "JOB")]
    job_id: String,

    /// Only events after this number
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "NUMBER")]
    after: u64,
}

impl WatchArgs {
    pub(crate) async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        let out = session.out;
        let job = follow(session, &self.job_id, self.after, |item| print(item, out)).await?;
        Ok(end_of(&job))
    }
}

fn print(item: Item, out: Output) -> Result<(), CliError> {
    match item {
        Item::Event(event) if out.is_json() => out.json_line(&view::Event::from(event)),
        Item::Event(event) => out.line(&event_line(&view::Event::from(event), out)),
        Item::Progress(progress) if out.is_json() => out.json_line(&view::Progress::from(progress)),
        Item::Progress(progress) => out.line(&progress_line(&progress)),
    }
}

fn progress_line(progress: &v1::Progress) -> String {
    format!("{:>16} {:>3}%  {}", "", progress.percent, progress.message).trim_end().to_owned()
}

fn event_line(event: &view::Event, out: Output) -> String {
    let mut line = format!("{} {:>3}  ", out.paint(&clock_time(event.at), Tone::Faint), event.n);
    line.push_str(&out.paint(&format!("{:<KIND_CHARS$}", event.kind), tone(&event.kind)));
    if event.attempt > 0 {
        line.push_str(&format!(" attempt {}", event.attempt));
    }
    for (word, value) in [("on", &event.worker_id), ("by", &event.actor), ("under", &event.rule)] {
        if let Some(value) = value {
            line.push_str(&format!(" {word} {value}"));
        }
    }
    if let Some(until) = event.until {
        line.push_str(&format!(" not before {}", clock_time(until)));
    }
    match (&event.reason, &event.message) {
        (Some(reason), Some(message)) => line.push_str(&format!(": {reason}: {message}")),
        (Some(text), None) | (None, Some(text)) => line.push_str(&format!(": {text}")),
        (None, None) => {}
    }
    line
}

fn tone(kind: &str) -> Tone {
    match kind {
        "succeeded" => Tone::Good,
        "failed" | "timed_out" | "denied" | "attempt_failed" | "attempt_lost" => Tone::Bad,
        "started" | "dispatched" => Tone::Busy,
        "pending" | "scheduled" | "approval_required" | "snoozed" | "given_back" | "waiting_for_children" => Tone::Waiting,
        _ => Tone::Plain,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::output::Format;

    #[test]
    fn an_event_is_one_line_with_what_applies_to_it() {
        let event = v1::JobEvent {
            n: 4,
            at_ms: 1_234,
            kind: "attempt_failed".to_owned(),
            attempt: 1,
            reason: "failed".to_owned(),
            message: "boom".to_owned(),
            until_ms: Some(2_500),
            ..v1::JobEvent::default()
        };
        let out = Output::new(Format::People { colour: false }, Timestamp::UNIX_EPOCH);
        assert_eq!(
            event_line(&view::Event::from(event), out),
            "00:00:01.234   4  attempt_failed       attempt 1 not before 00:00:02.500: failed: boom"
        );
    }
}
