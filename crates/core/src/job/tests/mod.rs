//! Every decision, by example.

mod approvals;
mod bypasses;
mod constraints;
mod endings;
mod families;
mod gates;
mod judging;
mod late;
mod losses;
mod memos;
mod outputs;
mod placing;
mod results;
mod retries;
mod stamps;

use std::sync::Arc;
use std::time::Duration;

use super::{
    AttemptReport, Dispatch, Effect, Env, Evidence, Illegal, Input, Job, JobEvent, JobState, Outcome, Reason, Transition,
};
use super::{EventKind, submit};
use crate::ids::{AttemptToken, JobId, SessionId};
use crate::limits::Limits;
use crate::output::OutputStep;
use crate::pools::RoutingId;
use crate::request::{Caller, JobRequest, Json, NewJob};
use crate::retry::Jitter;
use crate::time::Timestamp;
use crate::verdict::{Decision, Judgement, Verdict};

pub(super) const START: Timestamp = Timestamp::from_millis(1_000_000);

/// One job, its clock and all that was committed about it.
pub(super) struct Story {
    pub(super) job: Job,
    pub(super) now: Timestamp,
    pub(super) limits: Limits,
    /// The answer to the next question.
    pub(super) judgement: Judgement,
    pub(super) events: Vec<JobEvent>,
    minted: u64,
}

impl Story {
    pub(super) fn new() -> Self {
        Self::of(NewJob::default(), allow())
    }

    pub(super) fn of(new: NewJob, judgement: Judgement) -> Self {
        let limits = Limits::default();
        let caller = Caller::new("acme", "ann");
        let new = NewJob { topic: "job.echo".into(), ..new };
        let request = JobRequest::check(new, &caller, || JobId::from("job-1")).unwrap();
        let hash = request.hash();
        let born = submit(Arc::new(request), hash, &env_at(START, 1, &limits, judgement));
        Self { job: born.job, now: START, limits, judgement: allow(), events: born.events, minted: 1 }
    }

    /// A job that a worker holds.
    pub(super) fn dispatched() -> Self {
        let mut story = Self::new();
        story.dispatch();
        story
    }

    pub(super) fn running() -> Self {
        let mut story = Self::dispatched();
        story.advance(10);
        story.start();
        story
    }

    pub(super) fn advance(&mut self, ms: u64) {
        self.now = self.now + Duration::from_millis(ms);
    }

    /// Decides without committing.
    pub(super) fn decide(&self, input: Input) -> Result<Transition, Illegal> {
        self.job.next(input, &env_at(self.now, self.minted + 1, &self.limits, self.judgement.clone()))
    }

    /// Decides and commits.
    pub(super) fn apply(&mut self, input: Input) -> Result<Transition, Illegal> {
        let transition = self.decide(input)?;
        self.minted += 1;
        self.job = transition.job.clone();
        self.events.extend(transition.events.iter().cloned());
        Ok(transition)
    }

    pub(super) fn dispatch(&mut self) -> Transition {
        let wait = self.job.life.due_at.since(self.now);
        self.now = self.now + wait;
        self.apply(dispatch()).unwrap()
    }

    pub(super) fn start(&mut self) -> Transition {
        let (token, at) = (self.token(), self.now);
        self.apply(Input::Started { token, at }).unwrap()
    }

    pub(super) fn report(&mut self, outcome: Outcome) -> Transition {
        let token = self.token();
        self.apply(report(token, outcome)).unwrap()
    }

    pub(super) fn lose(&mut self) -> Transition {
        let input = Input::Lost { token: self.token(), reason: Reason::AgentLost, evidence: closed(), turn: Duration::ZERO };
        self.apply(input).unwrap()
    }

    pub(super) fn token(&self) -> AttemptToken {
        self.job.life.attempt.token.clone()
    }

    pub(super) fn state(&self) -> JobState {
        self.job.state()
    }

    pub(super) fn kinds(&self) -> Vec<EventKind> {
        self.events.iter().map(|event| event.kind).collect()
    }
}

pub(super) fn env_at(now: Timestamp, minted: u64, limits: &Limits, judgement: Judgement) -> Env<'_> {
    Env {
        now,
        token: format!("token-{minted}").into(),
        jitter: Jitter::from_bits(0),
        limits,
        timeouts: Arc::default(),
        judgement,
    }
}

pub(super) fn judgement(decision: Decision) -> Judgement {
    let verdict = Verdict::plain(decision, "a-rule", "a reason", "snapshot-1".into());
    Judgement::Decided(Arc::new(verdict))
}

pub(super) fn allow() -> Judgement {
    judgement(Decision::Allow)
}

pub(super) fn session() -> SessionId {
    "session-1".into()
}

pub(super) fn dispatch() -> Input {
    Input::Dispatch(Dispatch {
        session: session(),
        epoch: 7,
        worker: "worker-1".into(),
        assignment: 3,
        routing: RoutingId::default(),
    })
}

pub(super) fn closed() -> Evidence {
    Evidence::Closed { session: session(), epoch: 7 }
}

pub(super) fn report(token: AttemptToken, outcome: Outcome) -> Input {
    Input::Reported(AttemptReport { token, started_at: None, outcome, output: OutputStep::Pass })
}

pub(super) fn succeeded() -> Outcome {
    Outcome::Succeeded { result: Json::null() }
}

pub(super) fn failed() -> Outcome {
    Outcome::FailedRetryable { error: "it broke".into(), code: None, retry_after: None }
}

pub(super) fn stop(token: AttemptToken) -> Effect {
    Effect::Stop { session: session(), token }
}

pub(super) fn settled(token: AttemptToken) -> Effect {
    Effect::Settled { session: session(), token }
}

pub(super) fn cancel() -> Input {
    Input::Cancel { actor: "bob".into(), note: None }
}

pub(super) fn discard() -> Input {
    Input::Discard { actor: "ann".into(), reason: "paid by hand".into() }
}

pub(super) fn replay() -> Input {
    Input::Replay { actor: "bob".into() }
}
