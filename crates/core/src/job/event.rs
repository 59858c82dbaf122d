//! The history of a job: numbered facts, appended in the commit that made them true.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Job, Reason};
use crate::ids::{ActorId, WorkerId};
use crate::time::Timestamp;
use crate::unknown_name::UnknownName;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    Submitted,
    /// No verdict could be had yet.
    Pending,
    ApprovalRequired,
    /// A person approved.
    Approved,
    /// Let through without a verdict.
    SafetyBypassed,
    /// The verdict that came later would have refused it.
    BypassRefused,
    Scheduled,
    Dispatched,
    Started,
    /// The attempt asked whether it may do something, and may.
    ActionAllowed,
    ActionRefused,
    /// The attempt ended without ending the job; a new one follows.
    AttemptFailed,
    AttemptLost,
    /// The worker returned the attempt unstarted, because the server asked for it.
    GivenBack,
    Snoozed,
    /// The attempt submitted jobs of its own.
    ChildrenSubmitted,
    /// The attempt ended; the next one comes when its children have ended.
    WaitingForChildren,
    /// The barrier opened.
    ChildrenGathered,
    /// What came of the same work before stands for it.
    Memoised,
    /// An attempt that no longer counted was done all the same.
    DoneLate,
    /// The work is done; its result waits for the check.
    OutputHeld,
    /// The result was let out unchecked, because no scanner answered.
    OutputUnchecked,
    OutputRedacted,
    OutputQuarantined,
    /// A person released a quarantined result.
    Released,
    Succeeded,
    Failed,
    TimedOut,
    Cancelled,
    Denied,
    Replayed,
    /// A clock that was ahead had stamped it; what was counted from that stamp moved back.
    Restamped,
    /// Stored by a newer version: kept as it is, shown by its name, and nothing is concluded from it.
    #[serde(untagged)]
    Unknown(UnknownName),
}

impl EventKind {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Submitted => "submitted",
            Self::Pending => "pending",
            Self::ApprovalRequired => "approval_required",
            Self::Approved => "approved",
            Self::SafetyBypassed => "safety_bypassed",
            Self::BypassRefused => "bypass_refused",
            Self::Scheduled => "scheduled",
            Self::Dispatched => "dispatched",
            Self::Started => "started",
            Self::ActionAllowed => "action_allowed",
            Self::ActionRefused => "action_refused",
            Self::AttemptFailed => "attempt_failed",
            Self::AttemptLost => "attempt_lost",
            Self::GivenBack => "given_back",
            Self::Snoozed => "snoozed",
            Self::ChildrenSubmitted => "children_submitted",
            Self::WaitingForChildren => "waiting_for_children",
            Self::ChildrenGathered => "children_gathered",
            Self::DoneLate => "done_late",
            Self::Memoised => "memoised",
            Self::OutputHeld => "output_held",
            Self::OutputUnchecked => "output_unchecked",
            Self::OutputRedacted => "output_redacted",
            Self::OutputQuarantined => "output_quarantined",
            Self::Released => "released",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Denied => "denied",
            Self::Replayed => "replayed",
            Self::Restamped => "restamped",
            Self::Unknown(name) => name.as_str(),
        }
    }
}

/// One fact. Absent fields do not apply to its kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobEvent {
    /// 1, 2, 3 … without gaps over the whole job; what watchers resume from.
    pub n: u64,
    pub at: Timestamp,
    pub kind: EventKind,
    pub attempt: u32,
    /// The earlier attempt that this result came from, late: it had been declared lost, and `attempt` was its successor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_of: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<str>>,
    /// When the next attempt may start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<ActorId>,
    /// The rule that decided, with its snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Arc<str>>,
    /// The payload was hidden from the actor who agreed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub payload_hidden: bool,
}

impl JobEvent {
    /// The attempt that it is about.
    pub fn about(&self) -> u32 {
        self.late_of.unwrap_or(self.attempt)
    }

    /// It says that the worker itself ended the attempt, so that nothing of it runs any more. One that others ended was only
    /// told to stop, and a timeout may be either's word.
    pub fn is_from_worker(&self) -> bool {
        use EventKind::{
            AttemptFailed, AttemptLost, Cancelled, DoneLate, Failed, GivenBack, OutputHeld, OutputQuarantined, Snoozed,
            Succeeded, WaitingForChildren,
        };
        match self.kind {
            Succeeded | OutputHeld | DoneLate | Snoozed | GivenBack | WaitingForChildren => true,
            AttemptFailed | Failed => {
                matches!(self.reason, Some(Reason::Failed | Reason::Fatal | Reason::SnoozeLimit | Reason::OutputTooLarge))
            }
            AttemptLost => self.reason == Some(Reason::Interrupted),
            Cancelled => self.actor.is_none(),
            // Without a reason it is a note about a late result, and may be about another attempt.
            OutputQuarantined => self.reason.is_some(),
            _ => false,
        }
    }

    /// A fact about the job's current attempt; the number is given when the transition is closed.
    pub(super) fn of(job: &Job, kind: EventKind, at: Timestamp) -> Self {
        Self {
            n: 0,
            at,
            kind,
            attempt: job.life.attempt.no,
            late_of: None,
            worker: None,
            reason: None,
            message: None,
            until: None,
            actor: None,
            rule: None,
            payload_hidden: false,
        }
    }
}
