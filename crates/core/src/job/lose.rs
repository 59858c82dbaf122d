//! The platform lost an attempt: its worker went silent, or never had it.

use std::time::Duration;

use super::{Env, EventKind, Evidence, Failure, Illegal, Job, JobState, LostAttempt, Reason, Transition};
use crate::ids::AttemptToken;

impl Job {
    /// The infrastructure budget pays for the retry, never the client's failure budget.
    pub(super) fn lost(
        &self,
        token: &AttemptToken,
        reason: Reason,
        evidence: Evidence,
        turn: Duration,
        env: &Env<'_>,
    ) -> Result<Transition, Illegal> {
        // The token does not change when an attempt is dispatched, so an observation about one session must not end the
        // attempt if another session holds it.
        let elsewhere = match &evidence {
            Evidence::Attached { session, .. } | Evidence::Closed { session, .. } => {
                self.holder().is_some_and(|binding| binding.session != *session)
            }
            _ => false,
        };
        if elsewhere || !self.holds(token) {
            return Err(Illegal::Superseded);
        }
        // The attempt was to be revoked because it had not started, but it may have started since the caller looked.
        if reason == Reason::DispatchLost && self.unstarted_since(env.now).is_none() {
            return Err(Illegal::NotDue);
        }
        let mut transition = Transition::from(self);
        transition.evidence = evidence;
        transition.stop_worker(env.now);
        let policy = self.retry_policy(env.limits, &env.timeouts);
        let life = &mut transition.job.life;
        life.counters.infra_failures += 1;
        let failure = Failure::new(reason, lost_text(reason));
        let due_at = env.now + policy.infra_backoff(life.counters.infra_failures, turn, env.jitter);
        let spent = life.counters.infra_failures > policy.losses || !policy.retries(reason.as_str());
        if spent || !policy.in_time(life.began_at, due_at) {
            return Ok(transition.dead(JobState::Failed, failure, env.now));
        }
        let lost = LostAttempt { no: life.attempt.no, token: life.attempt.token.clone(), leaving: None };
        life.last_error = Some(failure.clone());
        transition.event(EventKind::AttemptLost, env.now, |event| {
            event.reason = Some(reason);
            event.message = Some(failure.message);
            event.until = Some(due_at);
        });
        let mut transition = transition.next_attempt(due_at, env);
        if !transition.job.life.state.is_terminal() {
            transition.job.life.lost = Some(lost);
        }
        Ok(transition)
    }
}

fn lost_text(reason: Reason) -> &'static str {
    match reason {
        Reason::DispatchLost => "the attempt was sent to a worker and never started",
        _ => "the worker holding the attempt went silent or no longer had it",
    }
}
