//! Checks why jobs ended: every end has a cause in the simulated world, and a budget ends a job exactly when it is spent
//! . Everything is computed from the events and the request.

use std::collections::BTreeSet;
use std::time::Duration;

use lockgate_core::ids::JobId;
use lockgate_core::job::{EventKind, JobEvent, Reason};
use lockgate_core::request::JobRequest;
use lockgate_core::time::Timestamp;
use lockgate_ports::JobDetail;

use crate::check::{Violation, ensure, is_end, tell};
use crate::people::{ANSWER_WITHIN, ASKED, DENIED};
use crate::world::SimWorld;

/// Failures that end a job whose client named no number.
const ATTEMPTS: u32 = 3;
/// Losses that the platform tolerates; one more ends a job.
const LOSSES: u32 = 6;
/// The longest pause after the first failure. It doubles with each one more.
const PAUSE: Duration = Duration::from_millis(1_500);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// What a life spent of each budget, its end included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spent {
    failures: u32,
    losses: u32,
    snoozes: u32,
}

impl Spent {
    fn of(life: &[JobEvent]) -> Self {
        let mut spent = Self::default();
        let mut late = BTreeSet::new();
        for event in life {
            // A late result of an attempt that was declared lost gives the infrastructure budget its charge back.
            let truth = event.late_of.filter(|_| event.kind != EventKind::DoneLate);
            if truth.is_some_and(|attempt| late.insert(attempt)) {
                spent.losses = spent.losses.saturating_sub(1);
            }
            match (event.kind, event.reason) {
                (EventKind::AttemptFailed, _)
                | (EventKind::Failed, Some(Reason::Failed | Reason::Fatal))
                | (EventKind::TimedOut, Some(Reason::ExecutionTimeout)) => spent.failures += 1,
                (EventKind::AttemptLost | EventKind::Failed, Some(Reason::AgentLost | Reason::DispatchLost)) => {
                    spent.losses += 1;
                }
                (EventKind::Snoozed, _) => spent.snoozes += 1,
                _ => {}
            }
        }
        spent
    }
}

pub(crate) fn check(world: &SimWorld, id: &JobId, detail: &JobDetail) -> Result<(), Violation> {
    let told = || format!("{id}: {}", tell(&detail.events));
    let request = &detail.job.request;
    let mut spent = Spent::default();
    // Each life begins with the event that says so.
    for life in detail.events.chunk_by(|_, next| next.kind != EventKind::Replayed) {
        spent = Spent::of(life);
        let Some(end) = life.iter().find(|event| is_end(event.kind)) else { continue };
        let why = || format!("{:?} by {:?} after {spent:?}, {}", end.kind, end.reason, told());
        ensure(within_budgets(spent, end, request, life), "A-6 a budget ends a job when it is spent", why)?;
        ensure(is_so(world, id, request, life, end), "a job ends for a reason that there was", why)?;
    }
    let counters = &detail.job.life.counters;
    let counted = Spent { failures: counters.failures, losses: counters.infra_failures, snoozes: counters.snoozes };
    ensure(counted == spent, "A-6 what is charged is what happened", || format!("{counted:?}, not {spent:?}: {}", told()))
}

fn deadline(request: &JobRequest, life: &[JobEvent]) -> Option<Timestamp> {
    let began = life.first()?.at;
    request.deadline_ms.map(|ms| began + Duration::from_millis(ms))
}

fn pause_max(failures: u32) -> Duration {
    PAUSE.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(PAUSE_MAX)
}

/// No budget is overspent, and a job that ended for a spent budget had spent it. Failures may end a job earlier if its
/// deadline comes before its next attempt.
fn within_budgets(spent: Spent, end: &JobEvent, request: &JobRequest, life: &[JobEvent]) -> bool {
    let attempts = request.max_attempts.unwrap_or(ATTEMPTS);
    match end.reason {
        Some(Reason::Failed | Reason::ExecutionTimeout) => {
            let last_pause = end.at + pause_max(spent.failures);
            let in_vain = deadline(request, life).is_some_and(|deadline| deadline <= last_pause);
            spent.losses <= LOSSES && (spent.failures == attempts || (spent.failures < attempts && in_vain))
        }
        Some(Reason::Fatal) => spent.losses <= LOSSES && spent.failures <= attempts,
        Some(Reason::AgentLost | Reason::DispatchLost) => spent.losses == LOSSES + 1 && spent.failures < attempts,
        _ => spent.losses <= LOSSES && spent.failures < attempts,
    }
}

/// Whether the reason is true. Reasons that workers report are checked when the events are written.
fn is_so(world: &SimWorld, id: &JobId, request: &JobRequest, life: &[JobEvent], end: &JobEvent) -> bool {
    let last = |kind: EventKind| life.iter().rev().find(|event| event.kind == kind);
    let ledger = world.ledger.lock();
    match (end.kind, end.reason) {
        (EventKind::Succeeded, None)
        | (EventKind::Failed, Some(Reason::Failed | Reason::Fatal | Reason::AgentLost | Reason::DispatchLost))
        | (EventKind::TimedOut, Some(Reason::ExecutionTimeout)) => true,
        (EventKind::Failed, Some(Reason::ChildrenTimeout)) => {
            last(EventKind::WaitingForChildren).and_then(|waits| waits.until).is_some_and(|until| until <= end.at)
        }
        (EventKind::TimedOut, Some(Reason::DeadlineExceeded)) => {
            deadline(request, life).is_some_and(|deadline| deadline <= end.at)
        }
        // Runs stop their jobs, and a parent that ends badly stops its children.
        (EventKind::Cancelled, Some(Reason::Cancelled)) => {
            request.run.is_some() || request.child_of.is_some() || ledger.cancelled.contains(id)
        }
        (EventKind::Denied, Some(Reason::Denied)) => world.cast.policies && request.topic.as_str() == DENIED,
        (EventKind::Denied, Some(Reason::ApprovalRejected)) => ledger.rejected.contains(id),
        (EventKind::Denied, Some(Reason::ApprovalExpired)) => {
            let asked = last(EventKind::ApprovalRequired).filter(|_| request.topic.as_str() == ASKED);
            asked.is_some_and(|asked| asked.at + ANSWER_WITHIN <= end.at)
        }
        (EventKind::OutputQuarantined, Some(Reason::OutputQuarantined)) => world.cast.outputs.is_some(),
        // These reasons never occur: no job snoozes that often, and every topic has a pool with workers.
        _ => false,
    }
}
