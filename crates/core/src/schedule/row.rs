//! The stored form of a schedule.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Spec;
use crate::ids::{ActorId, JobId, RunId, TenantId};
use crate::time::Timestamp;

/// A schedule and its progress. Its version is the compare-and-set of every turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    #[serde(skip, default = "nobody")]
    pub tenant: TenantId,
    #[serde(skip)]
    pub name: Arc<str>,
    #[serde(skip)]
    pub version: i64,
    /// The actor who applied the schedule; its jobs and runs are submitted in their name.
    pub actor: ActorId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor_type: Option<Arc<str>>,
    /// Whether a credential proved who the actor is.
    #[serde(rename = "verified", default, skip_serializing_if = "std::ops::Not::not")]
    pub actor_verified: bool,
    /// When the schedule's next turn is due.
    #[serde(skip)]
    pub wakes_at: Option<Timestamp>,
    /// Part of the ids of everything that the schedule starts, so that a later schedule of the same name starts other jobs.
    pub birth: Arc<str>,
    /// 1, and one more with each change of the spec.
    pub revision: u32,
    pub spec: Spec,
    /// T-2: every nominal time up to here is decided and never decided again. Moves back only with a new series.
    pub done_until: Timestamp,
    /// How often the schedule was restamped after a wrong clock. Its own times belong to another series after each.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub brought_back: u32,
    /// Missed times up to here are started, however late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catching_up: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Timestamp>,
    /// When it was last triggered by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggered_at: Option<Timestamp>,
    /// Slots with something left to do: due, started and awaited, or queued. Ordered by decision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<Slot>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backfills: Vec<Backfill>,
}

/// The times of a past span, to be started on an operator's order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backfill {
    pub id: Arc<str>,
    /// Times up to here are decided.
    pub done_until: Timestamp,
    /// The last time of the span.
    pub until: Timestamp,
    /// How many of its targets may run at once.
    pub concurrency: u32,
}

impl Backfill {
    /// A backfill of all times from `from` to `to`, both included.
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

/// Which times a slot belongs to: the schedule's own, those of a backfill, or triggers by hand.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Series(pub Arc<str>);

impl Series {
    const MANUAL: &str = "manual";
    const AGAIN: &str = "again:";

    /// The schedule's own times after it was restamped this often.
    pub fn own(brought_back: u32) -> Self {
        if brought_back == 0 { Self::default() } else { Self(format!("{}{brought_back}", Self::AGAIN).into()) }
    }

    pub fn is_own(&self) -> bool {
        self.0.is_empty() || self.0.starts_with(Self::AGAIN)
    }

    /// Triggers by hand.
    pub fn manual() -> Self {
        Self(Self::MANUAL.into())
    }

    /// Own times and triggers form one queue. Backfills yield to it.
    pub fn is_in_line(&self) -> bool {
        self.is_own() || &*self.0 == Self::MANUAL
    }
}

/// Identifies a slot. Its row is unique for ever.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SlotKey {
    /// Empty for the schedule's own times; `again:1` and so on after it was brought back.
    pub series: Series,
    pub nominal: Timestamp,
}

/// One nominal time, and its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    pub key: SlotKey,
    pub outcome: SlotOutcome,
    /// The reason for the outcome, where the outcome alone does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Arc<str>>,
    /// The job or run that the slot starts or has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    pub decided_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SlotOutcome {
    /// Decided: the target is to be started.
    Due,
    /// The target exists.
    Started,
    /// The slot waits for an earlier target to end.
    Queued,
    /// An earlier target was still running, or the queue was full.
    Skipped,
    /// The time was noticed later than the grace period allows.
    Missed,
    /// The job or run was refused.
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
