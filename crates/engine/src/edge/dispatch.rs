//! Claim for free places; judge again if the policy moved, commit DISPATCHED, send. Two loops: while one batch is committed
//! and sent, the next is claimed.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::edge::{SeatPlan, TracedJob, Unplaced, Want};
use lockgate_core::ids::{JobId, SessionId};
use lockgate_core::job::{Input, Job, JobState};
use lockgate_core::pools::{Routing, RoutingId};
use lockgate_core::time::Timestamp;
use lockgate_core::verdict::{Decision, Judgement};
use lockgate_ports::{Bell, ChangeError, Claim, Settlement, SnapshotKind, StoreError};
use tokio::time::Instant;

use super::claim::by_pool;
use crate::Inner;
use crate::commit::{JobDecision, Undriven};
use crate::health::progress;
use crate::traces::{Lap, TraceStart};

/// What was claimed longer ago is claimed anew: its times would be wrong, and others had no chance to have it.
const GOOD_FOR: Duration = Duration::from_secs(5);

/// A claimed job on its way to a session.
pub(super) struct DispatchTicket {
    session: SessionId,
    /// The session as it was chosen, and the configuration that it was chosen under.
    epoch: u64,
    routing: RoutingId,
    claim: Claim,
    job: Arc<Job>,
    /// How long the claim took.
    claiming: Lap,
    /// A place was taken for it.
    placed: bool,
}

/// Why a ticket must be compared with the Store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doubt {
    /// Another commit moved the job, or the session changed.
    Conflict,
    /// The outcome of the commit is unknown.
    Unknown,
}

/// What one round of claims is about to send.
#[derive(Default)]
pub(super) struct DispatchBatch {
    steps: Vec<JobDecision>,
    /// The tickets of the steps, in their order.
    sent: Vec<DispatchTicket>,
    /// Verdicts from an older policy.
    stale: Vec<DispatchTicket>,
    /// Their place was closed meanwhile.
    closed: Vec<DispatchTicket>,
    /// Not due by the clock of this process.
    early: Vec<DispatchTicket>,
    /// Claims that were old news.
    known: Vec<Settlement>,
}

/// What one round claimed, and what it has to send.
pub(crate) struct Batch {
    out: DispatchBatch,
    /// What found no place and takes one from others.
    urgent: Vec<Want>,
    routing: Arc<Routing>,
    since: Instant,
    /// Something was claimed for a place that was closed meanwhile: others may have one.
    misplaced: bool,
    /// When something that waits may go: a limit by time has room again, or it is due by the clock of this process.
    pub(crate) again_at: Option<Timestamp>,
}

impl Batch {
    /// Whether another claim may find something. If not, nothing fits now.
    pub(crate) fn is_worth_another(&self) -> bool {
        self.misplaced || !self.out.sent.is_empty() || !self.out.stale.is_empty()
    }

    /// It had to wait for too long.
    pub(crate) fn is_old(&self) -> bool {
        self.since.elapsed() > GOOD_FOR
    }

    /// Nothing has to follow.
    pub(crate) fn is_empty(&self) -> bool {
        let DispatchBatch { sent, stale, known, .. } = &self.out;
        sent.is_empty() && stale.is_empty() && known.is_empty() && self.urgent.is_empty()
    }
}

impl Inner {
    /// Claims for all free places.
    pub(crate) async fn claim_once(&self) -> Batch {
        let (routing, since) = (self.routing(), Instant::now());
        let (out, urgent) = (DispatchBatch::default(), Vec::new());
        let mut batch = Batch { out, urgent, routing: Arc::clone(&routing), since, misplaced: false, again_at: None };
        if self.config.is_unreadable() || self.edge.ask(|edge, now| edge.may_be_closed(now)) {
            // The active pools cannot be parsed here, or our edge lease may be gone: claim nothing.
            return batch;
        }
        batch.again_at = self.pass_time().await;
        // From lanes that are away nothing can be claimed.
        let demand = self.ports.lanes.demand().await.unwrap_or_default();
        self.edge.ask(|edge, _| edge.begin_round());
        batch.urgent = self.claim_all(by_pool(demand), &routing, &mut batch.out, &mut batch.again_at).await;
        self.edge.ask(|edge, now| edge.end_round(now));
        self.wake.feed.notify_one();
        // Before anything else is claimed: it may fit elsewhere.
        let (closed, early) = (std::mem::take(&mut batch.out.closed), std::mem::take(&mut batch.out.early));
        batch.misplaced = !closed.is_empty();
        let due = early.iter().map(|ticket| ticket.job.life.due_at);
        let left = self.edge.ask(|edge, now| Some(edge.left_until(now)?.since(now)));
        let left = left.map(|rest| self.ports.clock.now() + rest);
        batch.again_at = batch.again_at.into_iter().chain(due).chain(left).min();
        self.give_back(early).await;
        self.give_to_others(closed).await;
        batch
    }

    /// One commit for everything that was claimed.
    pub(crate) async fn send_once(&self, batch: Batch) -> Result<(), StoreError> {
        let Batch { mut out, urgent, routing, .. } = batch;
        let judged = self.judge_again(std::mem::take(&mut out.stale)).await;
        self.send_out(out).await?;
        judged?;
        self.make_room(urgent, &routing).await;
        Ok(())
    }

    /// What was claimed goes back to its lanes, for others to have at once.
    pub(crate) async fn take_back(&self, batch: Batch) {
        let DispatchBatch { sent, stale, known, .. } = batch.out;
        self.unsend(sent).await;
        self.give_to_others(stale).await;
        if !known.is_empty() {
            self.ports.lanes.settle(known).await;
        }
        self.wake.dispatch.notify_one();
    }

    /// Pairs claims with their jobs. A claim whose job does not wait any more, or not in this place, is settled.
    pub(super) async fn tickets(&self, claims: Vec<Claim>, began: TraceStart, plan: &SeatPlan) -> Vec<DispatchTicket> {
        let missing: Vec<_> = claims.iter().filter(|c| c.job.is_none()).map(|c| c.job_id.clone()).collect();
        let mut loaded = self.load_surely(&missing).await.into_iter();
        let claiming = self.traces.lap(began);
        let mut tickets = Vec::with_capacity(claims.len());
        let (mut gone, mut elsewhere) = (Vec::new(), Vec::new());
        for claim in claims {
            let job = claim.job.clone().or_else(|| loaded.next().flatten().map(Arc::new));
            match job.filter(|job| job.state() == JobState::Scheduled) {
                Some(job) if is_of(&claim, &job) => {
                    let (seat, routing) = (&plan.seats[claim.seat], plan.routing.clone());
                    let (session, epoch) = (seat.session.clone(), seat.epoch);
                    tickets.push(DispatchTicket { session, epoch, routing, claim, job, claiming, placed: false });
                }
                moved => {
                    gone.push(gone_from(&claim));
                    elsewhere.extend(moved);
                }
            }
        }
        if !gone.is_empty() {
            self.ports.lanes.settle(gone).await;
            self.offer_due(elsewhere).await;
        }
        tickets
    }

    /// Asks until the Store answers. Until then nothing else is dispatched, for nothing could be.
    async fn load_surely(&self, ids: &[JobId]) -> Vec<Option<Job>> {
        if ids.is_empty() {
            return Vec::new();
        }
        loop {
            match self.load_each(ids).await {
                // What cannot be read cannot be sent: its claim is settled like that of a job that is gone.
                Ok(jobs) => return jobs.into_iter().map(crate::damage::ReadRow::there).collect(),
                Err(error) => {
                    self.health.store_failed(&error);
                    self.metrics.loops.failed("dispatch");
                    tracing::warn!(%error, jobs = ids.len(), "claimed jobs could not be read yet");
                }
            }
            tokio::time::sleep(self.settings.start_flush).await;
            // It waits for the Store, which has a code of its own.
            progress();
        }
    }

    pub(super) fn verdict_stands(&self, job: &Job) -> bool {
        let Some(verdict) = &job.life.attempt.verdict else { return false };
        if !verdict.constraints.unknown.is_empty() || matches!(verdict.decision, Decision::Unknown(_)) {
            // A newer version set a condition that this one cannot enforce, or decided what it does not know.
            return false;
        }
        if verdict.bypassed {
            // Nobody judged it. As soon as somebody can, that comes first; else the mark of the policy in force carries it. Who
            // was asked and had no answer is not asked again on the way to a worker, or the job would never get to one: the
            // ledger asks.
            return (verdict.unanswered || !self.ports.kernel.ready()) && verdict.snapshot == *self.recalled.lock();
        }
        verdict.snapshot == self.ports.kernel.snapshot()
    }

    /// A verdict from an older policy does not carry a dispatch: the attempt is closed and judged anew.
    async fn judge_again(&self, stale: Vec<DispatchTicket>) -> Result<(), StoreError> {
        if stale.is_empty() {
            return Ok(());
        }
        let jobs = stale.iter().map(|ticket| (ticket.job.clone(), Input::Judged)).collect();
        match self.drive(jobs).await {
            Ok(driven) => {
                let (mut moved, mut refused) = (Vec::new(), Vec::new());
                for (ticket, outcome) in stale.into_iter().zip(driven) {
                    match outcome {
                        Ok(_) => {}
                        Err(Undriven::Refused(_)) => refused.push(ticket),
                        Err(_) => moved.push(ticket),
                    }
                }
                self.set_aside(refused).await;
                self.look_again(moved, Doubt::Unknown).await;
                Ok(())
            }
            Err(error) => {
                self.after_failed_commit(&error, stale).await;
                Err(error)
            }
        }
    }

    /// Takes places for what was claimed, all of them at one moment.
    pub(super) async fn take_places(&self, tickets: Vec<DispatchTicket>, out: &mut DispatchBatch) {
        let (tickets, stale): (Vec<_>, Vec<_>) = tickets.into_iter().partition(|ticket| self.verdict_stands(&ticket.job));
        out.stale.extend(stale);
        let effects = self.edge.step(|edge, now| {
            let mut effects = Vec::new();
            for mut ticket in tickets {
                let (session, env) = ((&ticket.session, ticket.epoch), self.env(Judgement::UNASKED));
                match edge.reserve(session, &ticket.routing, &ticket.job, &env, now) {
                    Ok((transition, more)) => {
                        effects.extend(more);
                        if ticket.claim.lane.shape.preferred_worker.is_some() {
                            effects.extend(edge.on_preferred(&ticket.session));
                        }
                        ticket.placed = true;
                        out.steps.push(JobDecision { before: ticket.job.clone(), transition });
                        out.sent.push(ticket);
                    }
                    Err(Unplaced::Closed) => out.closed.push(ticket),
                    Err(Unplaced::Early) => out.early.push(ticket),
                    Err(Unplaced::Known) => out.known.push(gone_from(&ticket.claim)),
                }
            }
            effects
        });
        self.perform(effects).await;
    }

    async fn send_out(&self, out: DispatchBatch) -> Result<(), StoreError> {
        let DispatchBatch { steps, sent, known, .. } = out;
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
        let (mut moved, mut refused) = (Vec::new(), Vec::new());
        for (ticket, outcome) in sent.into_iter().zip(outcomes) {
            match outcome {
                Ok(job) => {
                    claims.push(ticket.claiming);
                    dispatched.push(job);
                }
                Err(ChangeError::Refused(_)) => refused.push(ticket),
                Err(_) => moved.push(ticket),
            }
        }
        self.metrics.dispatched(&dispatched);
        self.traces.sent(committing, claims.into_iter().zip(&dispatched));
        self.assign(dispatched).await;
        self.set_aside(refused).await;
        self.look_again(moved, Doubt::Conflict).await;
        Ok(())
    }

    /// What the Store does not take. In its lane it would be claimed again at once, before all else that waits there: it stays
    /// outside until the re-offers bring it back, and its place is free for another.
    async fn set_aside(&self, tickets: Vec<DispatchTicket>) {
        if tickets.is_empty() {
            return;
        }
        self.unreserve(tickets.iter()).await;
        self.ports.lanes.settle(tickets.iter().map(|ticket| gone_from(&ticket.claim)).collect()).await;
        self.wake.dispatch.notify_one();
    }

    async fn assign(&self, jobs: Vec<Arc<Job>>) {
        let jobs = self.traced(jobs);
        let effects = self.edge.step(|edge, _| edge.on_dispatched(jobs));
        self.perform(effects).await;
    }

    /// Jobs with what the spans of their workers stand below.
    pub(super) fn traced(&self, jobs: Vec<Arc<Job>>) -> Vec<TracedJob> {
        let traced = |job: Arc<Job>| {
            let trace = self.traces.context(&job);
            (job, trace)
        };
        jobs.into_iter().map(traced).collect()
    }

    /// Only a commit that surely failed gives the claims back; an unknown one is read back first.
    async fn after_failed_commit(&self, error: &StoreError, sent: Vec<DispatchTicket>) {
        *self.wake.claim_at.lock() = Some(Instant::now() + self.settings.idle_claim);
        if !error.certainly_not_applied() {
            return self.look_again(sent, Doubt::Unknown).await;
        }
        self.unsend(sent).await;
    }

    /// Nothing of it was committed.
    async fn unsend(&self, sent: Vec<DispatchTicket>) {
        self.unreserve(sent.iter()).await;
        self.give_to_others(sent).await;
    }

    /// Another ticket for the same attempt may have taken the place that this one did not.
    async fn unreserve(&self, tickets: impl Iterator<Item = &DispatchTicket>) {
        let effects = self.edge.step(|edge, _| {
            let placed = tickets.filter(|ticket| ticket.placed);
            let token = |ticket: &DispatchTicket| ticket.job.life.attempt.token.clone();
            placed.flat_map(|ticket| edge.on_undispatched(&ticket.session, ticket.epoch, &token(ticket))).collect()
        });
        self.perform(effects).await;
    }

    /// What another process may have a place for.
    async fn give_to_others(&self, tickets: Vec<DispatchTicket>) {
        if !tickets.is_empty() {
            self.give_back(tickets).await;
            self.ports.bus.ring(vec![Bell::Lanes]).await;
        }
    }

    async fn give_back(&self, tickets: Vec<DispatchTicket>) {
        let returned = |DispatchTicket { claim, job, .. }: DispatchTicket| {
            let Claim { lane, key, number, .. } = claim;
            Settlement::Returned { lane, key, claim: number, job }
        };
        let settlements: Vec<_> = tickets.into_iter().map(returned).collect();
        if !settlements.is_empty() {
            self.ports.lanes.settle(settlements).await;
        }
    }

    /// Asks the Store what these jobs are now. One that turns out to be dispatched by this very ticket is sent.
    async fn look_again(&self, tickets: Vec<DispatchTicket>, doubt: Doubt) {
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
            self.unreserve(std::iter::once(&ticket)).await;
            if let Some(job) = job.filter(|job| job.state() == JobState::Scheduled) {
                // Neither the job nor what is in force moved, so the session did: it must attach anew before it gets more.
                let unmoved = doubt == Doubt::Conflict && job.version == ticket.job.version;
                if unmoved && self.stands(&job, &ticket.routing, &mut in_force).await {
                    let effects = self.edge.step(|edge, _| edge.on_disagreement(&ticket.session, ticket.epoch));
                    self.perform(effects).await;
                }
                waiting.push(job);
            } else {
                // Another commit moved it on, and its slot is free for another job.
                freed = true;
            }
        }
        if !gone.is_empty() {
            self.ports.lanes.settle(gone).await;
        }
        if freed {
            self.wake.dispatch.notify_one();
        }
        self.assign(ours).await;
        self.catch_up(in_force).await;
        self.offer_due(waiting).await;
    }

    /// Another configuration was activated: it is read at once, or what is claimed next would only conflict again.
    async fn catch_up(&self, in_force: Option<(Arc<str>, RoutingId)>) {
        let Some((policy, routing)) = in_force else { return };
        let mut read = Ok(());
        // Until everything was compared with it, jobs without a new verdict still go by the policy before.
        let recalled = self.recalled.lock().clone();
        if policy != self.ports.kernel.snapshot() || policy != recalled {
            read = self.policies_once().await.map(drop);
        }
        if routing != *self.routing().id() {
            read = read.and(self.configs_once().await);
        }
        if let Err(error) = read {
            tracing::warn!(%error, "active policy and configuration could not be read; trying again with the next tick");
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
/// it before this process heard of it, so that it looks like a conflict.
fn is_ours(job: &Job, ticket: &DispatchTicket) -> bool {
    let bound = job.holder().is_some_and(|binding| binding.session == ticket.session);
    bound && job.life.attempt.token == ticket.job.life.attempt.token
}

/// Whether the job waits where it was claimed. Lanes that missed something may name the place that it has left, and it may not be
/// due in its new one. What came with the claim was offered there.
fn is_of(claim: &Claim, job: &Job) -> bool {
    claim.job.is_some() || job.ready_key() == claim.key && job.lane() == claim.lane
}

fn gone_from(claim: &Claim) -> Settlement {
    Settlement::Gone { lane: claim.lane.clone(), key: claim.key, claim: Some(claim.number) }
}
