//! Ways an attempt ends and what follows: the next attempt, or the end of the job.

use super::Env;
use super::{Attempt, Effect, EventKind, Failure, Job, JobState, Reason, Transition};
use crate::time::Timestamp;
use crate::verdict::{Decision, Judgement, Verdict};

impl Transition {
    /// Closes the current attempt and mints the next, judged in the same commit.
    pub(super) fn next_attempt(mut self, due_at: Timestamp, env: &Env<'_>) -> Self {
        self.settle();
        let life = &mut self.job.life;
        life.attempt =
            Attempt { no: life.attempt.no + 1, token: env.token.clone(), verdict: None, binding: None, started_at: None };
        self.judge(due_at, env)
    }

    /// Puts the current, unplaced attempt where its verdict says.
    pub(super) fn judge(mut self, due_at: Timestamp, env: &Env<'_>) -> Self {
        self.job.life.due_at = due_at;
        let verdict = match &env.judgement {
            Judgement::Decided(verdict) => verdict.clone(),
            Judgement::Unavailable => return self.wait_for_verdict(env, "the safety kernel did not answer"),
        };
        self.job.life.attempt.verdict = Some(verdict.clone());
        match verdict.decision {
            Decision::Allow | Decision::AllowWithConstraints => {
                self.job.life.state = JobState::Scheduled;
                let until = (due_at > env.now).then_some(due_at);
                self.event(EventKind::Scheduled, env.now, |event| {
                    event.rule = Some(rule(&verdict));
                    event.until = until;
                });
                self.effects.push(Effect::Offer);
                self
            }
            Decision::Throttle => self.wait_for_verdict(env, &verdict.reason),
            Decision::RequireApproval => {
                self.job.life.state = JobState::ApprovalRequired;
                self.event(EventKind::ApprovalRequired, env.now, |event| event.rule = Some(rule(&verdict)));
                self
            }
            Decision::Deny => self.deny(&verdict, env),
        }
    }

    /// Fail closed: without a verdict nothing moves, and nothing is burnt.
    fn wait_for_verdict(mut self, env: &Env<'_>, why: &str) -> Self {
        let again = env.now + env.limits.judge_again_after;
        let life = &mut self.job.life;
        // Judged again with the same answer is not news.
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

    fn deny(mut self, verdict: &Verdict, env: &Env<'_>) -> Self {
        let failure = Failure::new(Reason::Denied, verdict.reason.clone());
        self.event(EventKind::Denied, env.now, |event| {
            event.rule = Some(rule(verdict));
            event.reason = Some(Reason::Denied);
            event.message = Some(verdict.reason.clone());
        });
        self.end(JobState::Denied, Some(failure), env.now)
    }

    /// The job is dead: `state` says how.
    pub(super) fn dead(mut self, state: JobState, failure: Failure, now: Timestamp) -> Self {
        let kind = if state == JobState::Timeout { EventKind::TimedOut } else { EventKind::Failed };
        self.event(kind, now, |event| {
            event.reason = Some(failure.reason);
            event.message = Some(failure.message.clone());
        });
        self.end(state, Some(failure), now)
    }

    /// The attempt failed by its own doing: retry while the budget lasts, else the job ends as `state`.
    pub(super) fn retry_or(mut self, state: JobState, failure: Failure, due_at: Timestamp, env: &Env<'_>) -> Self {
        self.job.life.counters.failures += 1;
        let spent = self.job.life.counters.failures >= self.job.request.max_attempts(env.limits);
        let late = self.job.life.deadline_at.is_some_and(|deadline| deadline <= due_at);
        if spent || late {
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
        self.life.state.is_held() && self.life.attempt.token == *token
    }
}
