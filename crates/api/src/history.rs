//! What happened to a job: events, progress, log lines.

use lockgate_core::job::{JobEvent, Reason};
use lockgate_core::time::Timestamp;
use lockgate_proto::v1;
use serde::Serialize;
use utoipa::ToSchema;

use crate::name_set::{EventKindName, ReasonName};
use crate::time::Time;
use crate::{ToWire, present, text};

/// One fact in a job's history. Numbers run 1, 2, 3 without gaps.
#[derive(Debug, Serialize, ToSchema)]
pub struct Event {
    pub n: u64,
    pub at: Time,
    #[schema(value_type = EventKindName)]
    pub kind: String,
    pub attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ReasonName>)]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When the next attempt may start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Progress {
    pub percent: u32,
    pub message: String,
    pub at: Time,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Logs {
    pub lines: Vec<LogLine>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct LogLine {
    /// Grows with every line, not always by one.
    pub no: u64,
    pub attempt: u32,
    pub at: Time,
    pub line: String,
}

impl ToWire for JobEvent {
    type Wire = v1::JobEvent;

    fn to_wire(&self) -> v1::JobEvent {
        v1::JobEvent {
            n: self.n,
            at_ms: self.at.as_millis(),
            kind: self.kind.as_str().to_owned(),
            attempt: self.attempt,
            worker_id: self.worker.as_ref().map(ToString::to_string).unwrap_or_default(),
            reason: text(self.reason.as_ref().map(Reason::as_str)),
            message: text(self.message.as_deref()),
            until_ms: self.until.map(Timestamp::as_millis),
            actor: self.actor.as_ref().map(ToString::to_string).unwrap_or_default(),
            rule: text(self.rule.as_deref()),
        }
    }
}

impl From<v1::JobEvent> for Event {
    fn from(wire: v1::JobEvent) -> Self {
        Self {
            n: wire.n,
            at: Time::from_millis(wire.at_ms),
            kind: wire.kind,
            attempt: wire.attempt,
            worker_id: present(wire.worker_id),
            reason: present(wire.reason),
            message: present(wire.message),
            until: wire.until_ms.map(Time::from_millis),
            actor: present(wire.actor),
            rule: present(wire.rule),
        }
    }
}

impl From<v1::Progress> for Progress {
    fn from(wire: v1::Progress) -> Self {
        Self { percent: wire.percent, message: wire.message, at: Time::from_millis(wire.at_ms) }
    }
}

impl From<v1::GetJobLogsResponse> for Logs {
    fn from(wire: v1::GetJobLogsResponse) -> Self {
        Self { lines: wire.lines.into_iter().map(LogLine::from).collect() }
    }
}

impl From<v1::get_job_logs_response::Line> for LogLine {
    fn from(wire: v1::get_job_logs_response::Line) -> Self {
        Self { no: wire.no, attempt: wire.attempt, at: Time::from_millis(wire.at_ms), line: wire.line }
    }
}
