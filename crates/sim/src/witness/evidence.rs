//! Checks the evidence that a change needs, whatever evidence the engine names, and whether it holds.

use std::time::Duration;

use lockgate_core::ids::SessionId;
use lockgate_core::job::{EventKind, Evidence, JobEvent, Reason, Transition};
use lockgate_core::pools::RoutingId;
use lockgate_core::time::Timestamp;
use lockgate_ports::SnapshotKind;

use super::Books;
use super::jobs::told;

/// How long an attempt may be on its way to its worker.
const DISPATCH: Duration = Duration::from_secs(120);
/// How long an attempt may run if its job has no timeout.
const RUNNING: Duration = Duration::from_secs(300);

impl Books {
    /// S-1. The witness's record is of the job before the change.
    pub(super) fn is_proven(&mut self, transition: &Transition, now: Timestamp) {
        let Transition { job, evidence, .. } = transition;
        let holds = self.proves(evidence, now);
        self.require(holds, "S-1 evidence holds when it is written", || told(job, &format!("{evidence:?}")));
        for event in &transition.events {
            let enough = self.is_enough(event, transition);
            self.require(enough, "S-1 nobody is sent, lost or timed out without evidence of it", || {
                told(job, &format!("{:?} by {:?} with {evidence:?}", event.kind, event.reason))
            });
        }
    }

    fn is_enough(&self, event: &JobEvent, transition: &Transition) -> bool {
        let Transition { job, evidence, .. } = transition;
        let before = self.jobs.get(&job.request.job_id);
        // A deadline precedes a later timeout.
        let reached = |at: Option<Timestamp>| {
            let due = at.into_iter().chain(job.life.deadline_at).min();
            matches!(evidence, Evidence::Reached(reached) if due.is_some_and(|due| due <= *reached))
        };
        match (event.kind, event.reason) {
            (EventKind::Dispatched, _) => {
                let to = job.life.attempt.binding.as_ref().map(|binding| &binding.session);
                matches!(evidence, Evidence::Allowed { session, .. } if to == Some(session))
            }
            (_, Some(Reason::AgentLost)) => {
                let from = before.and_then(|entry| entry.holder.as_ref());
                let (Evidence::Closed { session, .. } | Evidence::Attached { session, .. }) = evidence else { return false };
                from == Some(session)
            }
            (_, Some(Reason::DispatchLost)) => {
                before.and_then(|entry| entry.dispatched_at).is_some_and(|at| reached(Some(at + DISPATCH)))
            }
            (_, Some(Reason::ExecutionTimeout)) => {
                let span = job.request.timeout_ms.map_or(RUNNING, Duration::from_millis);
                before.and_then(|entry| entry.started_at).is_some_and(|at| reached(Some(at + span)))
            }
            (_, Some(Reason::DeadlineExceeded)) => reached(None),
            (_, Some(Reason::ApprovalExpired | Reason::ChildrenTimeout)) => matches!(evidence, Evidence::Reached(_)),
            (_, Some(Reason::NoPoolMapping | Reason::NoWorkers)) => matches!(evidence, Evidence::Routed(_)),
            _ => true,
        }
    }

    fn proves(&self, evidence: &Evidence, now: Timestamp) -> bool {
        let with_epoch = |id: &SessionId, epoch: u64, open: bool| {
            self.sessions.get(id).is_some_and(|s| s.epoch == epoch && s.open == open)
        };
        match evidence {
            Evidence::Version => true,
            Evidence::Reached(at) => *at <= now,
            Evidence::Attached { session, epoch } => with_epoch(session, *epoch, true),
            Evidence::Closed { session, epoch } => with_epoch(session, *epoch, false),
            Evidence::Allowed { session, epoch, policy, routing } => {
                let policy_stands = **policy == *self.in_force(SnapshotKind::Policy);
                with_epoch(session, *epoch, true) && policy_stands && self.routes(routing)
            }
            Evidence::InForce(policy) => **policy == *self.in_force(SnapshotKind::Policy),
            Evidence::Routed(routing) => self.routes(routing),
            Evidence::Unchanged { job, version } => {
                self.jobs.get(job).is_some_and(|entry| entry.version == *version && !entry.state.is_terminal())
            }
        }
    }

    fn routes(&self, routing: &RoutingId) -> bool {
        *routing.pools == *self.in_force(SnapshotKind::Pools) && *routing.states == *self.in_force(SnapshotKind::PoolStates)
    }
}
