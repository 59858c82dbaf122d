//! Claim for free places; judge again if the policy moved, commit DISPATCHED, send. Two loops: while one batch is committed
//! and sent, the next is claimed.

use std::sync::Arc;

use lockgate_core::ids::{JobId, SessionId};
use lockgate_core::job::{Input, Job, JobState};
use lockgate_core::pools::{Routing, RoutingId};
use lockgate_core::time::Timestamp;
use lockgate_core::verdict::Judgement;
use lockgate_ports::{Claim, Settlement, SnapshotKind, StoreError};

use super::claim::by_pool;
use super::seats::Want;
use super::sessions::Place;
use crate::Inner;
use crate::commit::Step;
use crate::health::moved;
use crate::traces::{Lap, Since};

/// A claimed job on its way to a session.
pub(super) struct Ticket {
    session: SessionId,
    claim: Claim,
    job: Arc<Job>,
    /// How long the claim took.
    claiming: Lap,
    /// What its dispatch rests on, once a place is taken for it.
    placed: Option<Placed>,
}

/// The session's epoch, and the configuration under which its worker was chosen.
struct Placed {
    epoch: u64,
    routing: RoutingId,
}

/// Why a ticket must be compared with the Store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doubt {
    /// Somebody moved the job, or the session is not what it was.
    Conflict,
    /// Nobody knows whether the commit happened.
    Unknown,
}

/// What one round of claims is about to send.
#[derive(Default)]
pub(super) struct Outgoing {
    steps: Vec<Step>,
    /// The tickets of the steps, in their order.
    sent: Vec<Ticket>,
    /// Verdicts from an older policy.
    stale: Vec<Ticket>,
    /// Their place was closed meanwhile.
    back: Vec<Ticket>,
    /// Claims that were old news.
    known: Vec<Settlement>,
}

/// What one round claimed, and what it has to send.
pub(crate) struct Batch {
    out: Outgoing,
    /// Jobs that found no place.
    unplaced: Vec<Want>,
    routing: Arc<Routing>,
    /// When a limit by time has room again for something that waits.
    pub(crate) again_at: Option<Timestamp>,
}

impl Batch {
    /// Jobs to be moved, to a worker or to a new verdict; zero means that nothing fits now.
    pub(crate) fn moves(&self) -> usize {
        self.out.sent.len() + self.out.stale.len()
    }

    /// Nobody has to do anything about it.
    pub(crate) fn is_empty(&self) -> bool {
        let Outgoing { steps: _, sent, stale, back, known } = &self.out;
        sent.is_empty() && stale.is_empty() && back.is_empty() && known.is_empty() && self.unplaced.is_empty()
    }
}

impl Inner {
    /// Claims for all free places.
    pub(crate) async fn claim_once(&self) -> Batch {
        let (routing, out) = (self.routing(), Outgoing::default());
        let mut batch = Batch { out, unplaced: Vec::new(), routing: Arc::clone(&routing), again_at: None };
        if self.config.is_unreadable() {
            // By what is in force nobody here can say who may take what.
            return batch;
        }
        batch.again_at = self.pass_time().await;
        // From lanes that are away nothing can be claimed.
        let demand = self.ports.lanes.demand().await.unwrap_or_default();
        batch.unplaced = self.claim_all(by_pool(demand), &routing, &mut batch.out, &mut batch.again_at).await;
        self.wake.feed.notify_one();
        batch
    }

    /// One commit for everything that was claimed.
    pub(crate) async fn send_once(&self, batch: Batch) -> Result<(), StoreError> {
        let Batch { mut out, unplaced, routing, .. } = batch;
        let judged = self.judge_again(std::mem::take(&mut out.stale)).await;
        self.send_out(out).await?;
        judged?;
        self.make_room(unplaced, &routing);
        Ok(())
    }

    /// What was claimed goes back to its lanes, for others to have at once.
    pub(crate) async fn take_back(&self, batch: Batch) {
        let Outgoing { steps: _, sent, stale, back, known } = batch.out;
        self.unsend(sent).await;
        self.give_back(stale.into_iter().chain(back).collect()).await;
        if !known.is_empty() {
            self.ports.lanes.settle(known).await;
        }
    }

    /// Pairs claims with their jobs. A claim whose job does not wait any more is settled.
    pub(super) async fn tickets(
        &self,
        claims: Vec<Claim>,
        began: Since,
        session: impl Fn(usize) -> SessionId,
    ) -> Vec<Ticket> {
        let missing: Vec<_> = claims.iter().filter(|c| c.job.is_none()).map(|c| c.job_id.clone()).collect();
        let mut loaded = self.load_surely(&missing).await.into_iter();
        let claiming = self.traces.lap(began);
        let mut tickets = Vec::with_capacity(claims.len());
        let mut gone = Vec::new();
        for claim in claims {
            let job = claim.job.clone().or_else(|| loaded.next().flatten().map(Arc::new));
            match job.filter(|job| job.state() == JobState::Scheduled) {
                Some(job) => tickets.push(Ticket { session: session(claim.seat), claim, job, claiming, placed: None }),
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
                    self.health.store_failed(&error);
                    tracing::warn!(%error, jobs = ids.len(), "claimed jobs could not be read yet");
                }
            }
            tokio::time::sleep(self.settings.start_flush).await;
            // It waits for the Store, which has a code of its own.
            moved();
        }
    }

    pub(super) fn verdict_stands(&self, job: &Job) -> bool {
        let Some(verdict) = &job.life.attempt.verdict else { return false };
        if verdict.bypassed {
            // Nobody judged it. As soon as somebody can, that comes first; else the mark of the policy in force carries it. Who
            // was asked and had no answer is not asked again on the way to a worker, or the job would never get to one: the
            // ledger asks.
            return (verdict.unanswered || !self.ports.kernel.ready()) && verdict.snapshot == *self.recalled.lock();
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
    pub(super) fn take_places(&self, tickets: Vec<Ticket>, routing: &RoutingId, out: &mut Outgoing) {
        for mut ticket in tickets {
            if !self.verdict_stands(&ticket.job) {
                out.stale.push(ticket);
                continue;
            }
            let decided = self.edge.next_dispatch(&ticket.session, routing).and_then(|dispatch| {
                ticket.placed = Some(Placed { epoch: dispatch.epoch, routing: dispatch.routing.clone() });
                ticket.job.next(Input::Dispatch(dispatch), &self.env(Judgement::Unavailable)).ok()
            });
            let Some(transition) = decided else {
                out.back.push(ticket);
                continue;
            };
            match self.edge.reserve(&ticket.session, Arc::new(transition.job.clone())) {
                Place::Taken => {
                    out.steps.push(Step { before: ticket.job.clone(), transition });
                    out.sent.push(ticket);
                }
                Place::Known => out.known.push(gone_from(&ticket.claim)),
                Place::Closed => out.back.push(ticket),
            }
        }
    }

    async fn send_out(&self, out: Outgoing) -> Result<(), StoreError> {
        let Outgoing { steps, sent, back, known, .. } = out;
        self.give_back(back).await;
        if !known.is_empty() {
            self.ports.lanes.settle(known).await;
        }
        let committing = self.traces.begin();
        let outcomes = match self.commit(steps).await {
            Ok(outcomes) => outcomes,
            Err(error) => {
                self.after_failed_commit(&error, sent).await;
                return Err(error);
            }
        };
        let mut dispatched = Vec::with_capacity(outcomes.len());
        let mut claims = Vec::with_capacity(outcomes.len());
        let mut moved = Vec::new();
        for (ticket, outcome) in sent.into_iter().zip(outcomes) {
            match outcome {
                Ok(job) => {
                    claims.push(ticket.claiming);
                    dispatched.push(job);
                }
                Err(_) => moved.push(ticket),
            }
        }
        self.metrics.dispatched(&dispatched);
        self.traces.sent(committing, claims.into_iter().zip(&dispatched));
        self.assign(dispatched);
        self.look_again(moved, Doubt::Conflict).await;
        Ok(())
    }

    pub(super) fn assign(&self, jobs: Vec<Arc<Job>>) {
        let traced = |job: Arc<Job>| {
            let trace = self.traces.context(&job);
            (job, trace)
        };
        self.edge.assign(jobs.into_iter().map(traced).collect());
    }

    /// Only a commit that surely failed gives the claims back; an unknown one is read back first.
    async fn after_failed_commit(&self, error: &StoreError, sent: Vec<Ticket>) {
        if !error.certainly_not_applied() {
            return self.look_again(sent, Doubt::Unknown).await;
        }
        self.unsend(sent).await;
    }

    /// Nothing of it was committed.
    async fn unsend(&self, sent: Vec<Ticket>) {
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
        let (mut in_force, mut freed) = (None, false);
        for (ticket, job) in tickets.into_iter().zip(jobs) {
            let token = &ticket.job.life.attempt.token;
            let job = job.map(Arc::new);
            if let Some(job) = job.as_ref().filter(|job| is_ours(job, &ticket)) {
                let (lane, key) = (ticket.claim.lane.clone(), ticket.claim.key);
                gone.push(Settlement::Sent { lane, key, token: token.clone() });
                ours.push(job.clone());
                continue;
            }
            gone.push(gone_from(&ticket.claim));
            self.edge.settle(&ticket.session, token);
            if let Some(job) = job.filter(|job| job.state() == JobState::Scheduled) {
                // Neither the job nor what is in force moved, so the session did: it must attach anew before it gets more.
                let unmoved = doubt == Doubt::Conflict && job.version == ticket.job.version;
                if let Some(placed) = ticket.placed.filter(|_| unmoved)
                    && self.stands(&job, &placed.routing, &mut in_force).await
                {
                    self.edge.suspect(&ticket.session, placed.epoch);
                }
                waiting.push(job);
            } else {
                // Somebody else moved it on, and its place is free for another.
                freed = true;
            }
        }
        if !gone.is_empty() {
            self.ports.lanes.settle(gone).await;
        }
        if freed {
            self.wake.dispatch.notify_one();
        }
        self.assign(ours);
        self.catch_up(in_force).await;
        self.offer(waiting).await;
    }

    /// Somebody put something else in force: taken in at once, or what is claimed next would only conflict again.
    async fn catch_up(&self, in_force: Option<(Arc<str>, RoutingId)>) {
        let Some((policy, routing)) = in_force else { return };
        let mut read = Ok(());
        if policy != self.ports.kernel.snapshot() {
            read = self.policies_once().await;
        }
        if routing != *self.routing().id() {
            read = read.and(self.configs_once().await);
        }
        if let Err(error) = read {
            tracing::warn!(%error, "what is in force could not be read; trying again with the next tick");
        }
    }

    /// Whether the policy that allowed the job, and the routing it was placed by, are still in force. Asked once for a batch
    /// of conflicts.
    async fn stands(&self, job: &Job, placed_by: &RoutingId, in_force: &mut Option<(Arc<str>, RoutingId)>) -> bool {
        if in_force.is_none() {
            // Without an answer nothing may be concluded about the session.
            *in_force = self.in_force().await.ok();
        }
        let Some((policy, routing)) = in_force else { return false };
        let verdict = job.life.attempt.verdict.as_ref();
        verdict.is_some_and(|verdict| verdict.snapshot == *policy) && placed_by == routing
    }

    async fn in_force(&self) -> Result<(Arc<str>, RoutingId), StoreError> {
        let policy = self.active_id(SnapshotKind::Policy).await?;
        let pools = self.active_id(SnapshotKind::Pools).await?;
        Ok((policy, RoutingId { pools, states: self.active_id(SnapshotKind::PoolStates).await? }))
    }

    async fn active_id(&self, kind: SnapshotKind) -> Result<Arc<str>, StoreError> {
        let active = self.ports.store.active(kind).await?;
        Ok(active.map_or_else(|| kind.builtin().into(), |active| active.id))
    }
}

/// Held by the very session of the ticket: its commit happened after all. The session may even have attached anew and begun
/// it before anybody here was told, so that it looks like a conflict.
fn is_ours(job: &Job, ticket: &Ticket) -> bool {
    let bound = job.holder().is_some_and(|binding| binding.session == ticket.session);
    bound && job.life.attempt.token == ticket.job.life.attempt.token
}

fn gone_from(claim: &Claim) -> Settlement {
    Settlement::Gone { lane: claim.lane.clone(), key: claim.key }
}
