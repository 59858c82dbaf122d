//! The history of a job: numbered events, each appended in the commit that made it true.

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
    /// The kernel could not give a verdict yet.
    Pending,
    ApprovalRequired,
    /// A person approved.
    Approved,
    /// The job runs without a verdict, because the kernel did not answer and the fail mode is open.
    SafetyBypassed,
    /// The verdict given after a bypass refuses the job.
    BypassRefused,
    Scheduled,
    Dispatched,
    Started,
    /// The attempt asked to perform an action, and policy allowed it.
    ActionAllowed,
    ActionRefused,
    /// The attempt ended without ending the job; a new attempt follows.
    AttemptFailed,
    AttemptLost,
    /// The worker returned the attempt unstarted, because the server revoked it.
    GivenBack,
    Snoozed,
    /// The attempt submitted children.
    ChildrenSubmitted,
    /// The attempt ended; the next one starts once the children have ended.
    WaitingForChildren,
    /// The barrier opened: no child is under way, or a person let the parent continue.
    ChildrenGathered,
    /// The memoised result of equal work was taken instead of running the job.
    Memoised,
    /// A revoked attempt succeeded nevertheless.
    DoneLate,
    /// The handler succeeded; the result is held until it has been scanned.
    OutputHeld,
    /// The result was exposed without a scan, because no scanner answered.
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
    /// An operator ended the wait before the next attempt.
    RetryForced,
    /// An operator said that the dead letter is not to be replayed.
    Discarded,
    /// The job's latest event had the stamp of a clock that was ahead; the times computed from that stamp moved back.
    Restamped,
    /// A kind stored by a newer version: kept unchanged, shown by its name, and ignored by every decision.
    #[serde(untagged)]
    Unknown(UnknownName),
}

impl EventKind {
    /// Those that this version writes.
    pub const ALL: [Self; 34] = [
        Self::Submitted,
        Self::Pending,
        Self::ApprovalRequired,
        Self::Approved,
        Self::SafetyBypassed,
        Self::BypassRefused,
        Self::Scheduled,
        Self::Dispatched,
        Self::Started,
        Self::ActionAllowed,
        Self::ActionRefused,
        Self::AttemptFailed,
        Self::AttemptLost,
        Self::GivenBack,
        Self::Snoozed,
        Self::ChildrenSubmitted,
        Self::WaitingForChildren,
        Self::ChildrenGathered,
        Self::Memoised,
        Self::DoneLate,
        Self::OutputHeld,
        Self::OutputUnchecked,
        Self::OutputRedacted,
        Self::OutputQuarantined,
        Self::Released,
        Self::Succeeded,
        Self::Failed,
        Self::TimedOut,
        Self::Cancelled,
        Self::Denied,
        Self::Replayed,
        Self::RetryForced,
        Self::Discarded,
        Self::Restamped,
    ];

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
            Self::RetryForced => "retry_forced",
            Self::Discarded => "discarded",
            Self::Restamped => "restamped",
            Self::Unknown(name) => name.as_str(),
        }
    }
}

/// One event. Fields that do not apply to its kind are absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobEvent {
    /// Numbered from 1 without gaps over all lives of the job; watchers resume after a number.
    pub n: u64,
    pub at: Timestamp,
    pub kind: EventKind,
    pub attempt: u32,
    /// The earlier attempt that produced this late result: that attempt had been declared lost, and `attempt` is its
    /// successor.
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
    /// The rule that decided, with its policy snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Arc<str>>,
    /// The payload was hidden from the actor who approved.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub payload_hidden: bool,
}

impl JobEvent {
    /// The attempt that the event is about.
    pub fn about(&self) -> u32 {
        self.late_of.unwrap_or(self.attempt)
    }

    /// Whether the worker itself ended the attempt, so that none of its work runs any more. An attempt that the platform
    /// ended was only told to stop. A timeout may come from either side and therefore does not count.
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
            // Without a reason the event notes a late result, which may belong to another attempt.
            OutputQuarantined => self.reason.is_some(),
            _ => false,
        }
    }

    /// An event about the job's current attempt; `Transition::push` numbers it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_stored_under_the_name_that_it_shows() {
        for kind in EventKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
            assert_eq!(serde_json::from_value::<EventKind>(kind.as_str().into()).unwrap(), kind);
        }
    }
}
