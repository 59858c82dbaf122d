//! Handles the worker's report of how the attempt ended.

use std::sync::Arc;
use std::time::Duration;

use super::{Env, EventKind, Failure, Illegal, Job, JobState, OnTimeout, Reason, Transition, clipped};
use crate::ids::AttemptToken;
use crate::limits::SPAN_MS_MAX;
use crate::output::OutputStep;
use crate::request::Json;
use crate::time::Timestamp;

/// How an attempt ended, as the worker reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Succeeded {
        result: Json,
    },
    FailedRetryable {
        error: Arc<str>,
        /// The handler's error code. The retry policy lists codes that are not retried.
        code: Option<Arc<str>>,
        retry_after: Option<Duration>,
    },
    FailedFatal {
        error: Arc<str>,
    },
    /// The handler exceeded its timeout and the worker stopped it.
    TimedOut,
    Cancelled {
        note: Arc<str>,
    },
    /// The handler asks to be run again later. Costs no attempt.
    Snooze {
        delay: Duration,
    },
    /// The handler asks to be run again once no child of the job is under way. Costs no attempt.
    AwaitChildren {
        /// The longest wait; [`WAIT_DEFAULT`](super::WAIT_DEFAULT) if absent.
        timeout: Option<Duration>,
        on_timeout: OnTimeout,
    },
    /// A worker that shuts down gives the attempt back. Costs no budget.
    Interrupted,
    /// The worker gives the attempt back unstarted, because the server revoked it. Costs no budget, and the job keeps its
    /// place in the lane.
    Revoked,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptReport {
    pub token: AttemptToken,
    /// When the attempt started, if no earlier commit recorded the start.
    pub started_at: Option<Timestamp>,
    pub outcome: Outcome,
    /// The outcome of the check of the result's metadata. Only a success has one.
    pub output: OutputStep,
}

impl Job {
    pub(super) fn reported(&self, report: AttemptReport, env: &Env<'_>) -> Result<Transition, Illegal> {
        if !self.holds(&report.token) {
            return self.truth_over_guess(report, env);
        }
        let mut transition = Transition::from(self);
        if let Some(at) = report.started_at
            && transition.job.life.state == JobState::Dispatched
        {
            transition.note_start(at, env.now);
        }
        Ok(transition.conclude(report.outcome, report.output, env))
    }

    /// the result of an attempt declared lost is accepted while its successor has not been dispatched. Declaring it
    /// lost was a guess: the infrastructure budget gets its charge back, and the undispatched successor is closed.
    fn truth_over_guess(&self, report: AttemptReport, env: &Env<'_>) -> Result<Transition, Illegal> {
        // A worker that was told to stop because of the wrong guess answers with one of these outcomes; they say nothing
        // about the work.
        let news = !matches!(report.outcome, Outcome::Cancelled { .. } | Outcome::Interrupted | Outcome::Revoked);
        let waiting = !self.life.state.is_terminal() && !self.life.state.is_held();
        let Some(lost) = self.life.lost.as_ref().filter(|lost| news && waiting && lost.token == report.token) else {
            return match report.outcome {
                Outcome::Succeeded { result } => self.done_late(&report.token, result, report.output, env),
                _ => self.let_go(&report.token),
            };
        };
        let mut transition = Transition::from(self);
        // The attempt counts after all, so it is no longer among the revoked ones.
        transition.job.life.taken.retain(|taken| taken.token != report.token);
        let counters = &mut transition.job.life.counters;
        counters.infra_failures = counters.infra_failures.saturating_sub(1);
        let mut transition = transition.conclude(report.outcome, report.output, env);
        if let Some(check) = &mut transition.job.life.output {
            check.attempt = lost.no;
            transition = transition.about(lost.no);
        }
        // The first event of a conclusion says how the attempt ended. That attempt is the lost one, not the successor.
        if let Some(event) = transition.events.first_mut() {
            event.late_of = Some(lost.no);
            let late = format!("late result of attempt {}, which had been declared lost", lost.no);
            event.message = Some(match &event.message {
                Some(message) => format!("{late}: {message}").into(),
                None => late.into(),
            });
        }
        Ok(transition)
    }
}

impl Transition {
    fn conclude(mut self, outcome: Outcome, output: OutputStep, env: &Env<'_>) -> Self {
        match outcome {
            Outcome::Succeeded { result } => {
                let max = self.job.constraints().max_output_bytes;
                if let Some(max) = max.filter(|max| result.as_str().len() as u64 > *max) {
                    let text = format!("the result has {} bytes and policy allows {max}", result.as_str().len());
                    return self.dead(JobState::Failed, Failure::new(Reason::OutputTooLarge, text), env.now);
                }
                self.succeed(result, output, env)
            }
            Outcome::FailedRetryable { error, code, retry_after } => {
                let failure = Failure::new(Reason::Failed, clipped(&error));
                self.retry_or(JobState::Failed, failure, code.as_deref(), retry_after.map(asked_delay), env)
            }
            Outcome::FailedFatal { error } => {
                self.job.life.counters.failures += 1;
                self.dead(JobState::Failed, Failure::new(Reason::Fatal, clipped(&error)), env.now)
            }
            Outcome::TimedOut => self.timed_out(env),
            Outcome::Cancelled { note } => {
                let failure = Failure::new(Reason::Cancelled, clipped(&note));
                self.event(EventKind::Cancelled, env.now, |event| {
                    event.reason = Some(Reason::Cancelled);
                    event.message = Some(failure.message.clone());
                });
                self.end(JobState::Cancelled, Some(failure), env.now)
            }
            Outcome::Snooze { delay } => self.snooze(delay, env),
            Outcome::AwaitChildren { timeout, on_timeout } => self.wait_for_children(timeout, on_timeout, env),
            Outcome::Revoked if self.job.life.state == JobState::Dispatched => self.give_back(env),
            // Work that had started was interrupted, by whatever name the worker reports it.
            Outcome::Interrupted | Outcome::Revoked => {
                self.event(EventKind::AttemptLost, env.now, |event| event.reason = Some(Reason::Interrupted));
                self.job.life.lost = None;
                self.next_attempt(env.now, env)
            }
        }
    }

    /// The attempt did no work, so no budget is spent. The old due time keeps the job ahead of all that became due later.
    fn give_back(mut self, env: &Env<'_>) -> Self {
        self.event(EventKind::GivenBack, env.now, |_| {});
        let due_at = self.job.life.due_at;
        self.next_attempt(due_at, env)
    }

    fn snooze(mut self, delay: Duration, env: &Env<'_>) -> Self {
        self.job.life.counters.snoozes += 1;
        if self.job.life.counters.snoozes > env.limits.snoozes_max {
            let text = format!("snoozed more than {} times", env.limits.snoozes_max);
            return self.dead(JobState::Failed, Failure::new(Reason::SnoozeLimit, text), env.now);
        }
        let due_at = env.now + asked_delay(delay);
        self.event(EventKind::Snoozed, env.now, |event| event.until = Some(due_at));
        self.job.life.lost = None;
        self.next_attempt(due_at, env)
    }
}

/// Bounds a delay that a worker asked for. Zero would retry in a busy loop; longer than a year is a mistake.
fn asked_delay(delay: Duration) -> Duration {
    delay.clamp(Duration::from_millis(1), Duration::from_millis(SPAN_MS_MAX))
}
