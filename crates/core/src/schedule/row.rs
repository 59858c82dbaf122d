//! What is stored of a schedule.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Spec;
use crate::ids::{ActorId, JobId, RunId, TenantId};
use crate::time::Timestamp;

/// A schedule and how far it came. Its version is the compare-and-set of every turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    #[serde(skip, default = "nobody")]
    pub tenant: TenantId,
    #[serde(skip)]
    pub name: Arc<str>,
    #[serde(skip)]
    pub version: i64,
    /// Who applied it; what it starts is theirs.
    pub actor: ActorId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor_type: Option<Arc<str>>,
    /// A credential said who the actor is.
    #[serde(rename = "verified", default, skip_serializing_if = "std::ops::Not::not")]
    pub actor_verified: bool,
    /// When it must be looked at next.
    #[serde(skip)]
    pub wakes_at: Option<Timestamp>,
    /// Goes into the ids of what it starts, so that another schedule of the same name later starts others.
    pub birth: Arc<str>,
    /// 1, and one more with each change of the spec.
    pub revision: u32,
    pub spec: Spec,
    /// T-2: every nominal time of its own up to here is decided, and never again. Goes back only with a new series.
    pub done_until: Timestamp,
    /// How often it was brought back from a time that was wrong. Its own times are of another series after each.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub brought_back: u32,
    /// Missed times up to here are being made up for, however late it got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catching_up: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Timestamp>,
    /// The latest start out of turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggered_at: Option<Timestamp>,
    /// Slots that are not done with: to be started, started and to be waited for, waiting. The earliest decided first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<Slot>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backfills: Vec<Backfill>,
}

/// The times of a span that are made up for on somebody's order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backfill {
    pub id: Arc<str>,
    /// Times up to here are decided.
    pub done_until: Timestamp,
    /// The last moment of the span.
    pub until: Timestamp,
    /// How many of its targets may be at work at once.
    pub concurrency: u32,
}

impl Backfill {
    /// Of all times from one moment to another, both included.
    pub fn new(id: Arc<str>, from: Timestamp, to: Timestamp, concurrency: u32) -> Self {
        let done_until = Timestamp::from_millis(from.as_millis().saturating_sub(1));
        Self { id, done_until, until: to, concurrency }
    }

    pub fn series(&self) -> Series {
        Series(format!("backfill:{}", self.id).into())
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn nobody() -> TenantId {
    TenantId::from("")
}

/// Which times are meant: the schedule's own, or those of a backfill.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Series(pub Arc<str>);

impl Series {
    const MANUAL: &str = "manual";
    const AGAIN: &str = "again:";

    /// The schedule's own times, after it was brought back so often.
    pub fn own(brought_back: u32) -> Self {
        if brought_back == 0 { Self::default() } else { Self(format!("{}{brought_back}", Self::AGAIN).into()) }
    }

    pub fn is_own(&self) -> bool {
        self.0.is_empty() || self.0.starts_with(Self::AGAIN)
    }

    /// Starts out of turn.
    pub fn manual() -> Self {
        Self(Self::MANUAL.into())
    }

    /// The schedule's own times and starts out of turn wait in one line. Backfills give way to it.
    pub fn is_in_line(&self) -> bool {
        self.is_own() || &*self.0 == Self::MANUAL
    }
}

/// Names a slot. There is one row for each, ever.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SlotKey {
    /// Empty for the schedule's own times; `again:1` and so on after it was brought back.
    pub series: Series,
    pub nominal: Timestamp,
}

/// One nominal time, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    pub key: SlotKey,
    pub outcome: SlotOutcome,
    /// In words, where the outcome alone does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Arc<str>>,
    /// What it starts, or started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    pub decided_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SlotOutcome {
    /// Decided: its target is to be started.
    Due,
    /// Its target is there.
    Started,
    /// Waits for an earlier one to end.
    Queued,
    /// An earlier one was still at work, or the queue was full.
    Skipped,
    /// Noticed too late.
    Missed,
    /// What it should start was refused.
    Refused,
}

impl SlotOutcome {
    pub const ALL: [Self; 6] = [Self::Due, Self::Started, Self::Queued, Self::Skipped, Self::Missed, Self::Refused];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Due => "DUE",
            Self::Started => "STARTED",
            Self::Queued => "QUEUED",
            Self::Skipped => "SKIPPED",
            Self::Missed => "MISSED",
            Self::Refused => "REFUSED",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    Job(JobId),
    Run(RunId),
}
