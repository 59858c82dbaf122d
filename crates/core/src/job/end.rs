//! How an attempt ends and what follows: the next attempt, or the end of the job.

use std::time::Duration;

use super::Env;
use super::{Approval, Attempt, Effect, EventKind, Failure, Job, JobState, Reason, Transition};
use crate::ids::ActorId;
use crate::time::Timestamp;
use crate::verdict::{Decision, Judgement, Verdict};

impl Transition {
    /// Closes the current attempt and mints the next one, judged in the same commit.
    pub(super) fn next_attempt(mut self, due_at: Timestamp, env: &Env<'_>) -> Self {
        self.settle();
        self.mint(env);
        self.judge(due_at, env)
    }

    /// Replaces the current attempt by the next one, without a verdict.
    pub(super) fn mint(&mut self, env: &Env<'_>) {
        let attempt = &mut self.job.life.attempt;
        *attempt = Attempt { no: attempt.no + 1, token: env.token.clone(), verdict: None, binding: None, started_at: None };
    }

    /// Moves the current, undispatched attempt to the state that its verdict implies.
    pub(super) fn judge(mut self, due_at: Timestamp, env: &Env<'_>) -> Self {
        self.job.life.due_at = due_at;
        let verdict = match &env.judgement {
            Judgement::Decided(verdict) => self.behind_the_gate(verdict),
            Judgement::Unavailable(why) => {
                return self.wait_for_verdict(env, why.as_deref().unwrap_or("the safety kernel did not answer"));
            }
        };
        self.job.life.attempt.verdict = Some(verdict.clone());
        let approved = || self.job.life.approval.as_ref().is_some_and(|given| given.satisfies(&verdict, env.now));
        match verdict.decision {
            Decision::Allow | Decision::AllowWithConstraints => self.schedule(&verdict, env),
            Decision::RequireApproval if approved() => self.schedule(&verdict, env),
            Decision::RequireApproval => self.ask(&verdict, env),
            Decision::Throttle => self.wait_for_verdict(env, &verdict.reason),
            Decision::Deny | Decision::Unknown(_) => {
                self.denied(Failure::new(Reason::Denied, verdict.reason.clone()), None, env.now)
            }
        }
    }

    fn schedule(mut self, verdict: &Verdict, env: &Env<'_>) -> Self {
        self.note_bypass(verdict, env.now);
        if self.job.request.gate.as_ref().is_some_and(|gate| gate.only) {
            return self.agreed(env.now);
        }
        self.job.life.state = JobState::Scheduled;
        let until = Some(self.job.life.due_at).filter(|due_at| *due_at > env.now);
        self.event(EventKind::Scheduled, env.now, |event| {
            event.rule = Some(rule(verdict));
            event.until = until;
        });
        self.effects.push(Effect::Offer);
        self
    }

    pub(super) fn ask(mut self, verdict: &Verdict, env: &Env<'_>) -> Self {
        self.job.life.state = JobState::ApprovalRequired;
        self.job.life.approval = Some(Approval::ask(verdict, env.now));
        self.event(EventKind::ApprovalRequired, env.now, |event| {
            event.rule = Some(rule(verdict));
            event.message = Some(verdict.reason.clone());
        });
        self
    }

    /// Fails closed: without a verdict the job waits, and no budget is spent.
    fn wait_for_verdict(mut self, env: &Env<'_>, why: &str) -> Self {
        let again = env.now + env.limits.judge_again_after;
        let life = &mut self.job.life;
        // Being judged again with the same outcome writes no second event.
        let already = life.state == JobState::Pending && self.events.is_empty();
        life.state = JobState::Pending;
        life.due_at = life.due_at.max(again);
        if !already {
            let until = life.due_at;
            self.event(EventKind::Pending, env.now, |event| {
                event.message = Some(why.into());
                event.until = Some(until);
            });
        }
        self
    }

    /// Ends the job as DENIED by the rule of the current attempt's verdict: at once, by a person's refusal, or because an
    /// approval expired.
    pub(super) fn denied(mut self, failure: Failure, actor: Option<ActorId>, now: Timestamp) -> Self {
        let rule = self.job.life.attempt.verdict.as_deref().map(rule);
        self.event(EventKind::Denied, now, |event| {
            event.rule = rule;
            event.actor = actor;
            event.reason = Some(failure.reason);
            event.message = Some(failure.message.clone());
        });
        self.end(JobState::Denied, Some(failure), now)
    }

    /// Ends the job as `state`, with a dead letter.
    pub(super) fn dead(mut self, state: JobState, failure: Failure, now: Timestamp) -> Self {
        let kind = if state == JobState::Timeout { EventKind::TimedOut } else { EventKind::Failed };
        self.event(kind, now, |event| {
            event.reason = Some(failure.reason);
            event.message = Some(failure.message.clone());
        });
        self.end(state, Some(failure), now)
    }

    /// The attempt failed by its handler's fault: retry while the failure budget lasts, else end the job as `state`. The
    /// handler may have named an error code and a delay.
    pub(super) fn retry_or(
        mut self,
        state: JobState,
        failure: Failure,
        code: Option<&str>,
        delay: Option<Duration>,
        env: &Env<'_>,
    ) -> Self {
        self.job.life.counters.failures += 1;
        let (policy, failures) = (self.job.retry_policy(env.limits, &env.timeouts), self.job.life.counters.failures);
        let due_at = env.now + delay.unwrap_or_else(|| policy.backoff(failures, env.jitter));
        let late = self.job.life.deadline_at.is_some_and(|deadline| deadline <= due_at);
        let code = code.unwrap_or(failure.reason.as_str());
        if !policy.retries(code) {
            let told = format!("{} (the code {code} is not tried again)", failure.message);
            return self.dead(state, Failure::new(failure.reason, told), env.now);
        }
        if failures >= policy.attempts || late || !policy.in_time(self.job.life.began_at, due_at) {
            return self.dead(state, failure, env.now);
        }
        self.event(EventKind::AttemptFailed, env.now, |event| {
            event.reason = Some(failure.reason);
            event.message = Some(failure.message.clone());
            event.until = Some(due_at);
        });
        self.job.life.last_error = Some(failure);
        self.job.life.lost = None;
        self.next_attempt(due_at, env)
    }
}

fn rule(verdict: &Verdict) -> std::sync::Arc<str> {
    format!("{}#{}", verdict.snapshot, verdict.rule).into()
}

impl Job {
    /// a report counts only with the token of the attempt that is held now.
    pub(super) fn holds(&self, token: &crate::ids::AttemptToken) -> bool {
        self.holder().is_some() && self.life.attempt.token == *token
    }
}
