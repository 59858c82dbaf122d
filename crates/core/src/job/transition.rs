//! What a decision returns: the next state, what to write with it, and what to do after the commit.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Discard, Duty, EventKind, Failure, Job, JobEvent, JobState, Reason};
use crate::ids::{AttemptToken, JobId, SessionId, TenantId, Topic};
use crate::lane::Priority;
use crate::pools::RoutingId;
use crate::request::Json;
use crate::time::Timestamp;

/// A decision, ready to be committed if the job still has version `previous`.
#[derive(Clone, Debug)]
pub struct Transition {
    pub job: Job,
    pub events: Vec<JobEvent>,
    pub effects: Vec<Effect>,
    pub dead_letter: Option<DeadLetter>,
    pub result: Option<Json>,
    pub evidence: Evidence,
    /// The address of the person who made this decision, if a person did.
    pub source: Option<IpAddr>,
    /// The duties that the job had before; see [`Transition::duties`].
    pub(super) owed: Vec<Duty>,
}

/// S-1: what must still be true, by the Store's own clock and rows, when the statement runs. The Store checks it in the
/// committing statement, so a decision made on a stale read changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Nothing besides the version.
    Version,
    /// The Store's clock has reached this time.
    Reached(Timestamp),
    /// The session is attached with exactly this epoch.
    Attached { session: SessionId, epoch: u64 },
    /// G-1: like `Attached`, and the policy in force is still the one that allowed the attempt, and the configuration in
    /// force is still the one by which its worker was chosen.
    Allowed { session: SessionId, epoch: u64, policy: Arc<str>, routing: RoutingId },
    /// G-6: the policy in force is still this one. For a decision that takes effect without a dispatch, where the policy
    /// would be checked.
    InForce(Arc<str>),
    /// The configuration in force is still the one under which no worker can take the job.
    Routed(RoutingId),
    /// F-1: this other job is live and has exactly this version.
    Unchanged { job: JobId, version: i64 },
    /// The session was closed with exactly this epoch.
    Closed { session: SessionId, epoch: u64 },
}

/// What to do after the commit. Effects are idempotent; if a crash loses one, the re-offer loop or the session rules repeat
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Offer the job to its lane, now or at its due time.
    Offer,
    /// Tell the session to stop working on the attempt: it no longer counts.
    Stop { session: SessionId, token: AttemptToken },
    /// The attempt that a session held has ended: free its worker slot and its concurrency limits.
    Settled { session: SessionId, token: AttemptToken },
}

/// Why a job ended badly, kept for a replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    pub job_id: JobId,
    pub tenant: TenantId,
    pub topic: Topic,
    pub priority: Priority,
    pub state: JobState,
    pub reason: Reason,
    pub message: Arc<str>,
    pub attempts: u32,
    pub life: u32,
    pub at: Timestamp,
    /// The labels of the job, so that dead letters can be searched by them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Absent from the stored letters, which are the open ones: a discard is stored with the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discarded: Option<Discard>,
}

impl Transition {
    /// Starts from a copy of the job with the next version.
    pub(super) fn from(job: &Job) -> Self {
        let mut next = job.clone();
        next.version += 1;
        Self {
            job: next,
            events: Vec::new(),
            effects: Vec::new(),
            dead_letter: None,
            result: None,
            evidence: Evidence::Version,
            source: None,
            owed: Duty::ALL.into_iter().filter(|duty| job.owes(*duty)).collect(),
        }
    }

    /// whether the run that the job belongs to must see this transition. A saga sees its jobs from their creation on,
    /// because it has no plan that names them. A compensation that waits for an approval is shown at once, because it may
    /// wait for long.
    pub fn tells_its_run(&self) -> bool {
        let Some(part) = &self.job.request.run else { return false };
        // A discard is about the dead letter alone; for the run nothing has changed.
        if self.events.iter().any(|event| event.kind == EventKind::Discarded) {
            return false;
        }
        let state = self.job.life.state;
        let begins = || self.job.version == 1 || self.events.iter().any(|event| event.kind == EventKind::Replayed);
        let counts = if part.undo { state == JobState::ApprovalRequired } else { part.run.is_saga() && begins() };
        // A late result that the scan holds is shown too: its run then waits for the scan and no longer for the worker.
        state.is_terminal() || counts
    }

    /// S-4: the only place where events are numbered, so that numbers have no gaps.
    pub(super) fn push(&mut self, mut event: JobEvent) {
        self.job.life.events += 1;
        event.n = self.job.life.events;
        self.events.push(event);
    }

    pub(super) fn event(&mut self, kind: EventKind, at: Timestamp, fill: impl FnOnce(&mut JobEvent)) {
        let mut event = JobEvent::of(&self.job, kind, at);
        fill(&mut event);
        self.push(event);
    }

    /// Tells the session that holds the current attempt to stop it.
    pub(super) fn stop_worker(&mut self, now: Timestamp) {
        let attempt = &self.job.life.attempt;
        if let Some(binding) = &attempt.binding {
            self.effects.push(Effect::Stop { session: binding.session.clone(), token: attempt.token.clone() });
            self.remember_taken(now);
        }
    }

    /// frees the worker slot of the current attempt, if a worker holds it.
    pub(super) fn settle(&mut self) {
        let attempt = &self.job.life.attempt;
        if let Some(binding) = self.job.holder() {
            self.effects.push(Effect::Settled { session: binding.session.clone(), token: attempt.token.clone() });
        }
    }

    /// J-2: the only path into a terminal state.
    pub(super) fn end(mut self, state: JobState, failure: Option<Failure>, now: Timestamp) -> Self {
        self.settle();
        let life = &mut self.job.life;
        life.state = state;
        // A late scan changes the job's outcome, not the time at which its work ended.
        life.ended_at.get_or_insert(now);
        life.lost = None;
        if let Some(failure) = failure {
            // J-4: every bad end leaves a dead letter, in the commit that ends the job.
            if state.is_dead() {
                self.dead_letter = Some(DeadLetter::of(&self.job, state, &failure, now));
            }
            self.job.life.last_error = Some(failure);
        }
        self
    }
}

impl DeadLetter {
    pub(super) fn of(job: &Job, state: JobState, failure: &Failure, at: Timestamp) -> Self {
        Self {
            job_id: job.request.job_id.clone(),
            tenant: job.request.tenant.clone(),
            topic: job.request.topic.clone(),
            priority: job.request.priority(),
            state,
            reason: failure.reason,
            message: failure.message.clone(),
            attempts: job.attempts_made(),
            life: job.life.no,
            at,
            labels: job.request.labels.clone(),
            discarded: None,
        }
    }
}
