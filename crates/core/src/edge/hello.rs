//! A worker attaches: what it says it holds is compared with what the Store says it holds.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::attempt::{HeldAttempt, HeldPhase, HeldSince, LeavingAttempt};
use super::dispatch::TracedJob;
use super::session::{Departure, EdgeSession, NO_LONGER_COUNTS};
use super::{EdgeEffect, EdgeState, Hello, InventoryItem, LeftAttempt, Moment, ToWorker};
use crate::ids::{AttemptToken, EdgeId, SessionId};
use crate::job::Job;
use crate::limits::{PREFETCH_MAX, SLOTS_MAX};
use crate::pools::Pools;
use crate::request::FieldError;
use crate::time::Timestamp;
use crate::worker::Load;

impl Hello {
    /// Everything that is wrong with it.
    pub fn check(&self, pools: &Pools) -> Result<(), Vec<FieldError>> {
        let mut errors = Vec::new();
        let names = [
            ("session", self.session.as_str()),
            ("worker_id", self.profile.worker.as_str()),
            ("pool", self.profile.pool.as_str()),
        ];
        for (field, name) in names {
            if let Err(error) = crate::ids::check_name(name) {
                errors.push(FieldError::new(field, error));
            }
        }
        if self.profile.slots == 0 || self.profile.slots > SLOTS_MAX {
            errors.push(FieldError::new("slots", format_args!("must be between 1 and {SLOTS_MAX}")));
        }
        if i64::try_from(self.highest_assignment).is_err() {
            errors.push(FieldError::new("highest_assignment", "is not a number that was ever given"));
        }
        // One that worked before may come back whatever became of its pool: it holds jobs, or results to tell.
        let new = self.inventory.is_empty() && self.highest_assignment == 0;
        if new && pools.pool(&self.profile.pool).is_none() {
            let known: Vec<&str> = pools.pools().map(|pool| pool.name.as_str()).collect();
            let (pool, known) = (&self.profile.pool, known.join(", "));
            errors.push(FieldError::new(
                "pool",
                format_args!("{pool:?} is not configured (known: {known}); add it to pools.yaml"),
            ));
        }
        if self.prefetch > PREFETCH_MAX {
            errors.push(FieldError::new("prefetch", format_args!("must be at most {PREFETCH_MAX}")));
        }
        if self.profile.topics.is_empty() {
            errors.push(FieldError::new("topics", "must name at least one topic"));
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

/// What the Store says a session holds, sorted by what the worker says of it.
#[derive(Debug, Default)]
pub struct Reconciled {
    /// The worker has them.
    kept: Vec<Arc<Job>>,
    /// Numbered after the last assignment the worker took: sent, and never arrived.
    resend: Vec<Arc<Job>>,
    /// Taken once, and not known to the worker any more.
    lost: Vec<Arc<Job>>,
    highest: u64,
}

impl Reconciled {
    pub fn new(hello: &Hello, stored: Vec<Job>) -> Self {
        let inventory: BTreeSet<&AttemptToken> = hello.inventory.iter().map(|item| &item.token).collect();
        let mut this = Self::default();
        for job in stored.into_iter().map(Arc::new) {
            let number = job.life.attempt.binding.as_ref().map_or(0, |binding| binding.assignment);
            this.highest = this.highest.max(number);
            match (inventory.contains(&job.life.attempt.token), number <= hello.highest_assignment) {
                (true, _) => this.kept.push(job),
                (false, true) => this.lost.push(job),
                (false, false) => this.resend.push(job),
            }
        }
        this
    }

    /// Attempts the worker has and the Store does not count as held by its session. The Store's rows of their jobs say whether they
    /// may still count: see [`InventoryItem::may_still_win`].
    pub fn strangers(&self, hello: &Hello) -> Vec<InventoryItem> {
        let known: BTreeSet<&AttemptToken> = self.kept.iter().map(|job| &job.life.attempt.token).collect();
        hello.inventory.iter().filter(|item| !known.contains(&item.token)).cloned().collect()
    }

    /// By its token. A lost one keeps its place until that is committed and the worker told.
    fn into_held(self, now: Moment) -> impl Iterator<Item = HeldAttempt> {
        let since = HeldSince::Attached(now);
        let told = self.kept.into_iter().chain(self.lost);
        let told = told.map(move |job| HeldAttempt::new(job, since, HeldPhase::Sent { asked_back: false }));
        told.chain(self.resend.into_iter().map(move |job| HeldAttempt::new(job, since, HeldPhase::Undelivered)))
    }
}

impl InventoryItem {
    /// Whether the attempt may still count although its session does not hold it, by its job: one that was declared lost may still
    /// win, and so may one held under an earlier session of the same worker, whose journal outlived it.
    pub fn may_still_win(&self, job: &Job) -> bool {
        let life = &job.life;
        let held = job.holder().is_some() && life.attempt.token == self.token;
        held || life.lost.as_ref().is_some_and(|lost| lost.token == self.token)
    }
}

/// A worker that attaches, with what the Store said of it.
#[derive(Debug)]
pub struct Arrival {
    /// The edge that the Store attached it to.
    pub edge: EdgeId,
    pub epoch: u64,
    pub hello: Hello,
    /// An operator wants it to leave.
    pub sent_away: bool,
    pub reconciled: Reconciled,
    /// What it holds and what does not count any more.
    pub over: Vec<InventoryItem>,
}

/// What became of an attach.
#[derive(Debug)]
pub enum Greeting {
    Welcome(Vec<EdgeEffect>),
    /// The worker attached again meanwhile, and that was faster.
    Overtaken,
    /// This is another edge by now: the session would have no stream here.
    EdgeClosed,
}

impl EdgeState {
    /// Takes a session. Its stream must be there before the effects are performed.
    pub fn on_hello(&mut self, arrival: Arrival, now: Moment, wall: Timestamp) -> Greeting {
        if self.id != arrival.edge {
            return Greeting::EdgeClosed;
        }
        let (id, epoch) = (arrival.hello.session.clone(), arrival.epoch);
        if self.sessions.get(&id).is_some_and(|known| known.epoch >= epoch) {
            return Greeting::Overtaken;
        }
        let mut out = Vec::new();
        let started: Vec<AttemptToken> =
            arrival.hello.inventory.iter().filter(|item| item.started).map(|item| item.token.clone()).collect();
        let Reconciled { lost, resend, .. } = &arrival.reconciled;
        let (lost, resend) = (lost.clone(), resend.clone());
        let (session, left) = self.greet(arrival, now, wall, &mut out);
        // Anew, for it may have come back with another profile.
        self.roster.remove(&id);
        self.sessions.insert(id.clone(), session);
        self.touch(&id, &mut out);
        if !left.is_empty() {
            out.push(EdgeEffect::Left(left));
        }
        self.note_starts(&id, started.iter(), now, wall, &mut out);
        if !lost.is_empty() {
            out.push(EdgeEffect::Lose { session: id.clone(), epoch, jobs: lost });
        }
        if !resend.is_empty() {
            out.push(EdgeEffect::Resend { session: id, epoch, jobs: resend });
        }
        out.push(EdgeEffect::WakeDispatch);
        Greeting::Welcome(out)
    }

    /// The session as it begins, and what its earlier epoch was letting go of and does not have any more: the limits of that are not
    /// freed yet.
    fn greet(
        &self,
        arrival: Arrival,
        now: Moment,
        wall: Timestamp,
        out: &mut Vec<EdgeEffect>,
    ) -> (EdgeSession, Vec<LeftAttempt>) {
        let Arrival { epoch, hello, sent_away, reconciled, over, .. } = arrival;
        let known = self.sessions.get(&hello.session);
        // Whatever number they were sent under, they have arrived.
        let leaving = |item: &InventoryItem| {
            let leaving = LeavingAttempt { job_id: item.job_id.clone(), of_run: true, number: 0, since: now };
            (item.token.clone(), leaving)
        };
        let mut session = EdgeSession {
            id: hello.session,
            epoch,
            profile: Arc::new(hello.profile),
            prefetch: hello.prefetch,
            attached: true,
            leave: Departure::Staying,
            heard_at: now,
            heard_wall: wall,
            held: BTreeMap::new(),
            leaving: over.iter().map(leaving).collect(),
            unsent: BTreeMap::new(),
            reported: VecDeque::new(),
            last_batch: 0,
            last_assignment: reconciled.highest.max(hello.highest_assignment),
            load: Load::default(),
            active_jobs: 0,
        };
        for item in over {
            let reason = NO_LONGER_COUNTS.into();
            session.tell(ToWorker::Stop { job_id: item.job_id, token: item.token, reason }, out);
        }
        for mut held in reconciled.into_held(now) {
            // A worker that comes back again and again has been heard of all the time.
            if let Some(before) = known.and_then(|known| known.held.get(&held.job.life.attempt.token)) {
                held.since = HeldSince::Attached(before.since.at());
            }
            session.hold(held);
        }
        if sent_away || known.is_some_and(EdgeSession::was_sent_away) {
            session.send_away(out);
        }
        let before = known.iter().flat_map(|known| &known.leaving);
        let left = before.filter(|(token, _)| !session.leaving.contains_key(*token)).map(LeftAttempt::of).collect();
        (session, left)
    }

    /// Those of its attempts that never arrived and that the policy in force allows are sent; the others are `withheld`.
    pub fn on_resent(
        &mut self,
        id: &SessionId,
        epoch: u64,
        allowed: Vec<TracedJob>,
        withheld: &[AttemptToken],
    ) -> Vec<EdgeEffect> {
        self.change(id, Some(epoch), |session, out| {
            for (job, trace) in allowed {
                if let Some(held) = session.held.get_mut(&job.life.attempt.token)
                    && matches!(held.phase, HeldPhase::Undelivered)
                {
                    held.job = job;
                    held.phase = HeldPhase::Ready { trace };
                }
            }
            for token in withheld {
                let Some(held) = session.held.get_mut(token) else { continue };
                if !matches!(held.phase, HeldPhase::Undelivered) {
                    continue;
                }
                held.phase = HeldPhase::Withheld;
                if let Some(number) = held.number() {
                    session.unsent.remove(&number);
                }
            }
            session.send_ready(out);
        })
    }
}
