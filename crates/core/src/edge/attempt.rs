//! What a session holds: attempts that count, and attempts on their way out.

use std::sync::Arc;

use super::{AttemptProgress, LeftAttempt, Moment};
use crate::ids::{AttemptToken, JobId};
use crate::job::{Job, JobState};
use crate::time::Timestamp;
use crate::trace::TraceParent;

/// An attempt that has a place in a session.
#[derive(Clone, Debug)]
pub(super) struct HeldAttempt {
    pub(super) job: Arc<Job>,
    pub(super) since: HeldSince,
    pub(super) phase: HeldPhase,
    pub(super) progress: Option<AttemptProgress>,
}

/// How this edge came to know of an attempt, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeldSince {
    /// Its place was taken on the stream that its worker still has.
    Dispatched(Moment),
    /// Its worker came with it, or the Store said so when the worker came.
    Attached(Moment),
}

impl HeldSince {
    pub(super) fn at(self) -> Moment {
        let (Self::Dispatched(at) | Self::Attached(at)) = self;
        at
    }
}

/// How far an attempt has come on its way to its worker, as the edge knows it. What is durable of it stands in its job.
///
/// `Reserved → Ready → Sent → Begun` is the way of a dispatch; `Undelivered → Sent | Withheld` that of an attempt that an earlier
/// stream did not deliver.
#[derive(Clone, Debug)]
pub(super) enum HeldPhase {
    /// Its place is taken and its dispatch not committed. Nothing is decided from it: the Store may have another job of this
    /// version.
    Reserved,
    /// Committed, and sent as soon as the fate of all assignments with smaller numbers is known.
    Ready { trace: Option<TraceParent> },
    /// Committed on an earlier stream that ended before it arrived. It is compared with the policy in force before it is sent again.
    Undelivered,
    /// Like `Undelivered`, and it is not sent again as things are. The inventory rule or its time to start ends it.
    Withheld,
    /// On its way to the worker, or waiting there.
    Sent {
        /// It was asked back for something more urgent.
        asked_back: bool,
    },
    /// The worker reported its start: by wall time, and by ours.
    Begun { at: Timestamp, since: Moment },
}

impl HeldAttempt {
    pub(super) fn new(job: Arc<Job>, since: HeldSince, phase: HeldPhase) -> Self {
        Self { job, since, phase, progress: None }
    }

    /// The number of its assignment.
    pub(super) fn number(&self) -> Option<u64> {
        self.job.life.attempt.binding.as_ref().map(|binding| binding.assignment)
    }

    /// Whether the Store says that the session holds it.
    pub(super) fn is_stored(&self) -> bool {
        !matches!(self.phase, HeldPhase::Reserved)
    }

    /// Whether the worker has it or will have.
    pub(super) fn is_told(&self) -> bool {
        matches!(self.phase, HeldPhase::Sent { .. } | HeldPhase::Begun { .. })
    }

    /// Whether assignments with larger numbers wait for it.
    pub(super) fn is_unsent(&self) -> bool {
        matches!(self.phase, HeldPhase::Reserved | HeldPhase::Ready { .. } | HeldPhase::Undelivered)
    }

    /// When its start was reported on this stream.
    pub(super) fn started(&self) -> Option<Timestamp> {
        match self.phase {
            HeldPhase::Begun { at, .. } => Some(at),
            _ => None,
        }
    }

    /// Stored, and its start is neither stored nor reported.
    pub(super) fn is_unstarted(&self) -> bool {
        self.is_stored() && self.started().is_none() && self.job.state() == JobState::Dispatched
    }

    /// The inventory rule: the worker has taken the assignments up to `highest` and does not have this one. It does not speak of what
    /// is about to be sent, whatever its number.
    pub(super) fn is_missing(&self, highest: u64, has: impl FnOnce(&AttemptToken) -> bool) -> bool {
        let sent = matches!(self.phase, HeldPhase::Withheld | HeldPhase::Sent { .. } | HeldPhase::Begun { .. });
        sent && self.number().is_some_and(|number| number <= highest) && !has(&self.job.life.attempt.token)
    }

    /// Since when its handler may have been at work, if it was dispatched on this stream or its start was reported there. The start
    /// of what ends at once is never reported; then the whole way there and back counts.
    pub(super) fn at_work_since(&self) -> Option<Moment> {
        match (&self.phase, self.since) {
            (HeldPhase::Begun { since, .. }, _) => Some(*since),
            (_, HeldSince::Dispatched(at)) => Some(at),
            _ => None,
        }
    }
}

/// An attempt that no longer counts, and that its worker has not let go of.
#[derive(Clone, Debug)]
pub(super) struct LeavingAttempt {
    pub(super) job_id: JobId,
    /// A run waits for its end before it undoes anything.
    pub(super) of_run: bool,
    /// That it was sent under.
    pub(super) number: u64,
    pub(super) since: Moment,
}

impl LeftAttempt {
    pub(super) fn of((token, leaving): (&AttemptToken, &LeavingAttempt)) -> Self {
        Self { token: token.clone(), job_of_run: leaving.of_run.then(|| leaving.job_id.clone()) }
    }
}
