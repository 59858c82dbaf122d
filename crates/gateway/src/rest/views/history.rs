//! What happened to a job: events, progress, log lines.

use lockgate_core::job::{self as core, Reason};
use lockgate_engine::AttemptProgress as EngineProgress;
use lockgate_ports::KeptLine;
use serde::Serialize;
use utoipa::ToSchema;

use super::Time;

/// One fact in a job's history. Numbers run 1, 2, 3 without gaps.
#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Event {
    n: u64,
    at: Time,
    kind: String,
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// When the next attempt may start.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Progress {
    percent: u32,
    message: String,
    at: Time,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Logs {
    lines: Vec<LogLine>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct LogLine {
    /// Grows with every line, not always by one.
    no: u64,
    attempt: u32,
    at: Time,
    line: String,
}

impl From<&core::JobEvent> for Event {
    fn from(event: &core::JobEvent) -> Self {
        Self {
            n: event.n,
            at: Time(event.at),
            kind: event.kind.as_str().to_owned(),
            attempt: event.attempt,
            worker_id: event.worker.as_ref().map(ToString::to_string),
            reason: event.reason.map(Reason::as_str),
            message: event.message.as_ref().map(ToString::to_string),
            until: event.until.map(Time),
            actor: event.actor.as_ref().map(ToString::to_string),
            rule: event.rule.as_ref().map(ToString::to_string),
        }
    }
}

impl From<&EngineProgress> for Progress {
    fn from(progress: &EngineProgress) -> Self {
        Self { percent: progress.percent, message: progress.message.to_string(), at: Time(progress.at) }
    }
}

impl From<Vec<KeptLine>> for Logs {
    fn from(lines: Vec<KeptLine>) -> Self {
        Self { lines: lines.iter().map(LogLine::from).collect() }
    }
}

impl From<&KeptLine> for LogLine {
    fn from(KeptLine { no, line }: &KeptLine) -> Self {
        Self { no: *no, attempt: line.attempt, at: Time(line.at), line: line.line.to_string() }
    }
}
