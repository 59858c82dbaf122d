//! The attempts of a job, derived from its events.

use std::sync::Arc;

use super::{EventKind, JobEvent, Reason};
use crate::ids::WorkerId;
use crate::time::Timestamp;

/// One attempt as shown to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptSummary {
    pub no: u32,
    pub worker: Option<WorkerId>,
    pub dispatched_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// How the attempt ended; None while it waits or runs.
    pub outcome: Option<EventKind>,
    pub reason: Option<Reason>,
    pub message: Option<Arc<str>>,
    pub rule: Option<Arc<str>>,
}

/// Folds events into attempts, oldest first. Only attempts that were judged or placed appear.
pub fn attempts(events: &[JobEvent]) -> Vec<AttemptSummary> {
    let mut list: Vec<AttemptSummary> = Vec::new();
    for event in events {
        if about_the_job(event.kind) || is_note(event) {
            continue;
        }
        // A late result belongs to the attempt that produced it. The successor minted meanwhile was never placed, so it is
        // not listed.
        let no = event.about();
        list.truncate(list.partition_point(|known| known.no <= no));
        if list.last().is_none_or(|last| last.no != no) {
            list.push(blank(no));
        }
        if let Some(attempt) = list.last_mut() {
            attempt.apply(event);
        }
    }
    list
}

impl EventKind {
    /// Whether it can be the outcome of an attempt.
    pub const fn ends_an_attempt(self) -> bool {
        !about_the_job(self) && !matches!(self, Self::Scheduled | Self::ApprovalRequired | Self::Dispatched | Self::Started)
    }
}

/// Events that neither place nor end an attempt.
const fn about_the_job(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Submitted
            | EventKind::Replayed
            | EventKind::RetryForced
            | EventKind::Discarded
            | EventKind::Pending
            | EventKind::Approved
            | EventKind::ActionAllowed
            | EventKind::ActionRefused
            | EventKind::SafetyBypassed
            | EventKind::BypassRefused
            | EventKind::DoneLate
            | EventKind::Memoised
            | EventKind::OutputUnchecked
            | EventKind::OutputRedacted
            | EventKind::Released
            | EventKind::ChildrenSubmitted
            | EventKind::ChildrenGathered
            | EventKind::Restamped
            | EventKind::Unknown(_)
    )
}

/// A late result was quarantined. The event ends neither the job nor the attempt, which had been revoked before.
fn is_note(event: &JobEvent) -> bool {
    event.kind == EventKind::OutputQuarantined && event.reason.is_none()
}

fn blank(no: u32) -> AttemptSummary {
    AttemptSummary {
        no,
        worker: None,
        dispatched_at: None,
        started_at: None,
        ended_at: None,
        outcome: None,
        reason: None,
        message: None,
        rule: None,
    }
}

impl AttemptSummary {
    fn apply(&mut self, event: &JobEvent) {
        match event.kind {
            kind if about_the_job(kind) => {}
            EventKind::Scheduled | EventKind::ApprovalRequired => self.rule.clone_from(&event.rule),
            EventKind::Dispatched => {
                self.worker.clone_from(&event.worker);
                self.dispatched_at = Some(event.at);
            }
            EventKind::Started => self.started_at = Some(event.at),
            _ => {
                self.ended_at = Some(event.at);
                self.outcome = Some(event.kind);
                self.reason = event.reason;
                self.message.clone_from(&event.message);
            }
        }
    }
}
