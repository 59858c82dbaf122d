//! Claim for free places, judge again if the policy moved, commit DISPATCHED, send.

use std::sync::Arc;

use lockgate_core::ids::{JobId, PoolName, SessionId};
use lockgate_core::job::{DEFAULT_POOL, Input, Job, JobState};
use lockgate_core::verdict::{BUILTIN_ALLOW, Judgement};
use lockgate_ports::{Claim, ClaimRequest, Settlement, SnapshotKind, StoreError};

use super::sessions::Place;
use crate::Inner;
use crate::commit::Step;

/// A claimed job on its way to a session.
struct Ticket {
    session: SessionId,
    claim: Claim,
    job: Arc<Job>,
}

/// Why a ticket must be compared with the Store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doubt {
    /// Somebody moved the job, or the session is not what it was.
    Conflict,
    /// Nobody knows whether the commit happened.
    Unknown,
}

impl Inner {
    /// One claim for all free places. How many jobs moved, to a worker or to a new verdict; zero means that nothing fits now.
    pub(crate) async fn dispatch_once(&self) -> Result<usize, StoreError> {
        let pool = PoolName::from(DEFAULT_POOL);
        let shapes = self.ports.lanes.shapes(&pool).await;
        let mut free = self.edge.free_seats(&pool, &shapes);
        free.retain(|place| !place.seat.shapes.is_empty());
        if free.is_empty() {
            return Ok(0);
        }
        let seats = free.iter().map(|place| place.seat.clone()).collect();
        let claims = self.ports.lanes.claim(ClaimRequest { pool, seats, limit: self.settings.batch_max }).await;
        self.wake.feed.notify_one();
        if claims.is_empty() {
            return Ok(0);
        }
        let tickets = self.tickets(claims, |seat| free[seat].session.clone()).await;
        let (tickets, stale): (Vec<_>, Vec<_>) = tickets.into_iter().partition(|t| self.verdict_stands(&t.job));
        let moved = stale.len();
        let judged = self.judge_again(stale).await;
        let sent = self.send_out(tickets).await?;
        judged.map(|()| sent + moved)
    }

    /// Pairs claims with their jobs. A claim whose job does not wait any more is settled.
    async fn tickets(&self, claims: Vec<Claim>, session: impl Fn(usize) -> SessionId) -> Vec<Ticket> {
        let missing: Vec<_> = claims.iter().filter(|c| c.job.is_none()).map(|c| c.job_id.clone()).collect();
        let mut loaded = self.load_surely(&missing).await.into_iter();
        let mut tickets = Vec::with_capacity(claims.len());
        let mut gone = Vec::new();
        for claim in claims {
            let job = claim.job.clone().or_else(|| loaded.next().flatten().map(Arc::new));
            match job.filter(|job| job.state() == JobState::Scheduled) {
                Some(job) => tickets.push(Ticket { session: session(claim.seat), claim, job }),
                None => gone.push(gone_from(&claim)),
            }
        }
        if !gone.is_empty() {
            self.ports.lanes.settle(gone).await;
        }
        tickets
    }

    /// Asks until the Store answers. Until then nothing else is dispatched, for nothing could be.
    async fn load_surely(&self, ids: &[JobId]) -> Vec<Option<Job>> {
        if ids.is_empty() {
            return Vec::new();
        }
        loop {
            match self.ports.store.load(ids).await {
                Ok(jobs) => return jobs,
                Err(error) => {
                    self.health.store_answered(false);
                    tracing::warn!(%error, jobs = ids.len(), "claimed jobs could not be read yet");
                }
            }
            tokio::time::sleep(self.settings.start_flush).await;
        }
    }

    pub(super) fn verdict_stands(&self, job: &Job) -> bool {
        let Some(verdict) = &job.life.attempt.verdict else { return false };
        if verdict.bypassed {
            // Nobody judged it. As soon as somebody can, that comes first; else the mark of the policy in force carries it.
            return !self.ports.kernel.ready() && verdict.snapshot == *self.recalled.lock();
        }
        verdict.snapshot == self.ports.kernel.snapshot()
    }

    /// A verdict from an older policy does not carry a dispatch: the attempt is closed and judged anew.
    async fn judge_again(&self, stale: Vec<Ticket>) -> Result<(), StoreError> {
        if stale.is_empty() {
            return Ok(());
        }
        let jobs = stale.iter().map(|ticket| (ticket.job.clone(), Input::Judged)).collect();
        match self.drive(jobs).await {
            Ok(driven) => {
                let moved = stale.into_iter().zip(driven).filter(|(_, outcome)| outcome.is_err()).map(|(ticket, _)| ticket);
                self.look_again(moved.collect(), Doubt::Unknown).await;
                Ok(())
            }
            Err(error) => {
                self.after_failed_commit(&error, stale).await;
                Err(error)
            }
        }
    }

    /// The place is taken before the commit and given up if it fails, so that whatever happens to the job in between
    /// finds the place and frees it.
    async fn send_out(&self, tickets: Vec<Ticket>) -> Result<usize, StoreError> {
        let mut steps = Vec::with_capacity(tickets.len());
        let mut sent = Vec::with_capacity(tickets.len());
        let (mut back, mut known) = (Vec::new(), Vec::new());
        for ticket in tickets {
            let decided = self
                .edge
                .next_dispatch(&ticket.session)
                .and_then(|dispatch| ticket.job.next(Input::Dispatch(dispatch), &self.env(Judgement::Unavailable)).ok());
            let Some(transition) = decided else {
                back.push(ticket);
                continue;
            };
            match self.edge.reserve(&ticket.session, Arc::new(transition.job.clone())) {
                Place::Taken => {
                    steps.push(Step { before: ticket.job.clone(), transition });
                    sent.push(ticket);
                }
                Place::Known => known.push(gone_from(&ticket.claim)),
                Place::Closed => back.push(ticket),
            }
        }
        self.give_back(back).await;
        if !known.is_empty() {
            self.ports.lanes.settle(known).await;
        }
        let outcomes = match self.commit(steps).await {
            Ok(outcomes) => outcomes,
            Err(error) => {
                self.after_failed_commit(&error, sent).await;
                return Err(error);
            }
        };
        let mut dispatched = Vec::with_capacity(outcomes.len());
        let mut moved = Vec::new();
        for (ticket, outcome) in sent.into_iter().zip(outcomes) {
            match outcome {
                Ok(job) => dispatched.push(job),
                Err(_) => moved.push(ticket),
            }
        }
        let count = dispatched.len();
        self.metrics.dispatched(&dispatched);
        self.edge.assign(dispatched);
        self.look_again(moved, Doubt::Conflict).await;
        Ok(count)
    }

    /// Only a commit that surely failed gives the claims back; an unknown one is read back first.
    async fn after_failed_commit(&self, error: &StoreError, sent: Vec<Ticket>) {
        if !error.certainly_not_applied() {
            return self.look_again(sent, Doubt::Unknown).await;
        }
        for ticket in &sent {
            self.edge.settle(&ticket.session, &ticket.job.life.attempt.token);
        }
        self.give_back(sent).await;
    }

    async fn give_back(&self, tickets: Vec<Ticket>) {
        let returned = |t: Ticket| Settlement::Returned { lane: t.claim.lane, key: t.claim.key, job: t.job };
        let settlements: Vec<_> = tickets.into_iter().map(returned).collect();
        if !settlements.is_empty() {
            self.ports.lanes.settle(settlements).await;
        }
    }

    /// Asks the Store what these jobs are now. One that turns out to be dispatched by this very ticket is sent.
    async fn look_again(&self, tickets: Vec<Ticket>, doubt: Doubt) {
        let ids: Vec<_> = tickets.iter().map(|t| t.claim.job_id.clone()).collect();
        let jobs = self.load_surely(&ids).await;
        let (mut gone, mut waiting, mut ours) = (Vec::new(), Vec::new(), Vec::new());
        let mut in_force = None;
        for (ticket, job) in tickets.into_iter().zip(jobs) {
            gone.push(gone_from(&ticket.claim));
            let token = &ticket.job.life.attempt.token;
            let job = job.map(Arc::new);
            if let Some(job) = job.as_ref().filter(|job| doubt == Doubt::Unknown && is_ours(job, &ticket)) {
                ours.push(job.clone());
                continue;
            }
            self.edge.settle(&ticket.session, token);
            if let Some(job) = job.filter(|job| job.state() == JobState::Scheduled) {
                // Neither the job nor the policy moved, so the session did: it must attach anew before it gets more.
                let unmoved = doubt == Doubt::Conflict && job.version == ticket.job.version;
                if unmoved && self.policy_stands(&job, &mut in_force).await {
                    self.edge.suspect(&ticket.session);
                }
                waiting.push(job);
            }
        }
        if !gone.is_empty() {
            self.ports.lanes.settle(gone).await;
        }
        self.edge.assign(ours);
        self.offer(waiting).await;
    }

    /// Whether the policy that allowed the job is still in force. Asked once for a batch of conflicts.
    async fn policy_stands(&self, job: &Job, in_force: &mut Option<Arc<str>>) -> bool {
        if in_force.is_none() {
            *in_force = match self.ports.store.active(SnapshotKind::Policy).await {
                Ok(active) => Some(active.map_or_else(|| BUILTIN_ALLOW.into(), |active| active.id)),
                // Without an answer nothing may be concluded about the session.
                Err(_) => None,
            };
        }
        let verdict = job.life.attempt.verdict.as_ref();
        in_force.is_some() && verdict.map(|verdict| &verdict.snapshot) == in_force.as_ref()
    }
}

/// Dispatched by the commit whose outcome was unknown: the same attempt, on the same session.
fn is_ours(job: &Job, ticket: &Ticket) -> bool {
    let bound = job.life.attempt.binding.as_ref().is_some_and(|binding| binding.session == ticket.session);
    job.state() == JobState::Dispatched && bound && job.life.attempt.token == ticket.job.life.attempt.token
}

fn gone_from(claim: &Claim) -> Settlement {
    Settlement::Gone { lane: claim.lane.clone(), key: claim.key }
}
