//! Draws decisions: an input for a job, and the verdict on it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::SessionId;
use lockgate_core::job::{Answer, AttemptReport, Dispatch, Evidence, Input, Job, JobState, OnTimeout, Outcome, Reason};
use lockgate_core::output::{OutputDecision, OutputStep};
use lockgate_core::pools::RoutingId;
use lockgate_core::request::Json;
use lockgate_core::time::Timestamp;
use lockgate_core::verdict::{ApprovalTerms, Decision, Judgement, Verdict};

use super::SESSIONS;
use crate::store::stage::{ask, cancel, release, replay, scanned, under, verdict_on_output, vote};

/// Draws small numbers from one word.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        let rolled = self.0 % sides;
        self.0 /= sides;
        rolled
    }

    pub(super) fn once_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }

    pub(super) fn name(&mut self, prefix: &str, sides: u64) -> String {
        format!("{prefix}-{}", self.roll(sides))
    }
}

/// The configuration that the deciding process knows.
pub(super) struct Scene {
    pub(super) epochs: BTreeMap<SessionId, u64>,
    /// The policy in force.
    pub(super) policy: Arc<str>,
}

impl Scene {
    pub(super) fn epoch(&self, session: &SessionId) -> u64 {
        self.epochs.get(session).copied().unwrap_or(1)
    }

    pub(super) fn judgement(&self, dice: &mut Dice) -> Judgement {
        match dice.roll(16) {
            0 => Judgement::UNASKED,
            1 => under(&self.policy, Decision::Deny),
            2 => under(&self.policy, Decision::Throttle),
            // Judged by a process that has not adopted the latest policy.
            3 => under(&dice.name("policy", 3), Decision::Allow),
            4 => Judgement::Decided(Arc::new(Verdict::bypass("nobody answered", self.policy.clone()))),
            5..=7 => ask(ApprovalTerms {
                approvers: 1 + u32::from(dice.once_in(3)),
                request_expiry_ms: dice.once_in(2).then(|| 1 + dice.roll(20_000)),
                valid_for_ms: dice.once_in(3).then(|| 1 + dice.roll(10_000)),
            }),
            _ => under(&self.policy, Decision::Allow),
        }
    }

    /// Anything may happen to any job; what its state waits for happens more often.
    pub(super) fn input(&self, job: &Job, now: Timestamp, dice: &mut Dice) -> Input {
        if dice.once_in(3) {
            return self.any_input(job, now, dice);
        }
        match job.state() {
            JobState::ApprovalRequired => ballot(job, dice),
            JobState::Scheduled => self.dispatch(dice),
            _ if job.needs_rejudging() && dice.once_in(2) => Input::Rejudged,
            _ if job.holder().is_some() => report(job, now, dice),
            _ if job.needs_scan() => scan(job, dice),
            JobState::OutputQuarantined if !dice.once_in(3) => release(),
            state if state.is_dead() => replay(),
            _ => self.any_input(job, now, dice),
        }
    }

    fn any_input(&self, job: &Job, now: Timestamp, dice: &mut Dice) -> Input {
        let token = job.life.attempt.token.clone();
        match dice.roll(15) {
            0 => self.dispatch(dice),
            1 => Input::Started { token, at: now },
            2 | 3 => report(job, now, dice),
            4 => {
                let nobody = || SessionId::from("session-0");
                let session = job.life.attempt.binding.as_ref().map_or_else(nobody, |binding| binding.session.clone());
                let evidence = Evidence::Closed { epoch: self.epoch(&session), session };
                Input::Lost { token, reason: Reason::AgentLost, evidence, turn: Duration::ZERO }
            }
            5 => Input::Woken,
            6 => Input::Judged,
            7 => cancel(),
            8 => ballot(job, dice),
            9 => scan(job, dice),
            10 => release(),
            11 => Input::Spawned { token, children: 1 },
            12 => Input::Gathered { token },
            13 => Input::Settled { life: job.life.no },
            _ => replay(),
        }
    }

    fn dispatch(&self, dice: &mut Dice) -> Input {
        let session = SessionId::from(dice.name("session", SESSIONS));
        let epoch = self.epoch(&session) + dice.roll(8) / 7;
        Input::Dispatch(Dispatch {
            session,
            epoch,
            worker: "worker".into(),
            assignment: dice.roll(100),
            routing: RoutingId::default(),
        })
    }
}

/// Of the attempt that is held, or of one that was declared lost or taken away.
fn report(job: &Job, now: Timestamp, dice: &mut Dice) -> Input {
    let gone = if dice.once_in(2) { job.life.lost.as_ref() } else { job.life.taken.first() };
    let lost = gone.filter(|_| dice.once_in(2)).map(|lost| lost.token.clone());
    let token = lost.unwrap_or_else(|| job.life.attempt.token.clone());
    let started_at = dice.once_in(2).then_some(now);
    Input::Reported(AttemptReport { token, started_at, outcome: outcome(dice), output: output_step(dice) })
}

fn ballot(job: &Job, dice: &mut Dice) -> Input {
    let answer = if dice.once_in(4) { Answer::Reject } else { Answer::Approve };
    vote(job, &dice.name("person", 3), answer)
}

fn scan(job: &Job, dice: &mut Dice) -> Input {
    scanned(job, output_decision(dice), Json::trusted("[1]"))
}

fn output_decision(dice: &mut Dice) -> OutputDecision {
    match dice.roll(5) {
        0 | 1 => OutputDecision::Allow,
        2 => OutputDecision::Quarantine,
        3 => OutputDecision::Deny,
        _ => OutputDecision::Redact,
    }
}

fn output_step(dice: &mut Dice) -> OutputStep {
    match dice.roll(6) {
        0 | 1 => OutputStep::Scan { hold: true },
        2 => OutputStep::Scan { hold: false },
        3 => OutputStep::Unchecked { why: "nobody answered".into() },
        4 => OutputStep::Decided(Arc::new(verdict_on_output(output_decision(dice)))),
        _ => OutputStep::Pass,
    }
}

fn outcome(dice: &mut Dice) -> Outcome {
    match dice.roll(11) {
        0..=3 => Outcome::Succeeded { result: Json::trusted("[1]") },
        4 => Outcome::FailedRetryable { error: "again".into(), code: None, retry_after: None },
        5 => Outcome::FailedFatal { error: "broken".into() },
        6 => Outcome::Snooze { delay: Duration::from_millis(dice.roll(100)) },
        7 => Outcome::TimedOut,
        8 => Outcome::AwaitChildren { timeout: Some(Duration::from_millis(dice.roll(100))), on_timeout: OnTimeout::Fail },
        9 => Outcome::AwaitChildren { timeout: None, on_timeout: OnTimeout::Review },
        _ => Outcome::Interrupted,
    }
}
