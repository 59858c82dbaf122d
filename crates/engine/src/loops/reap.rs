//! Looks over this edge's own sessions and attempts: silence, attempts past their time.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::edge::{Departed, EdgeEffect, EdgeState};
use lockgate_core::ids::{JobId, SessionId};
use lockgate_core::job::{Evidence, Illegal, Input, Job, Reason};
use lockgate_core::time::Timestamp;
use lockgate_ports::StoreError;
use tokio::sync::watch;
use tokio::time::Instant;

use super::tick;
use crate::Inner;
use crate::commit::Undriven;
use crate::damage::ReadRow;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let mut looked = Instant::now();
    while tick(&mut stop, inner.settings.reap_every).await {
        // A process that was stopped or starved received no beats.
        if looked.elapsed() > inner.settings.reap_every * 2 {
            inner.edge.ask(|edge, now| edge.on_standstill(now));
            inner.health.stood_still();
        }
        looked = Instant::now();
        if let Err(error) = inner.reap_once().await {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("reap");
            tracing::warn!(%error, "sessions could not be checked; trying again with the next tick");
        }
    }
}

impl Inner {
    pub(crate) async fn reap_once(&self) -> Result<(), StoreError> {
        let began = Instant::now();
        let Some(before) = began.checked_sub(self.settings.lost_after) else { return Ok(()) };
        // What ended in time while the Store was away waits to be stored: it must not be called late.
        let overdue = if self.health.could_store_since(before) { self.reap_overdue(before).await } else { Ok(()) };
        // Silence counts only while we could have heard them: a worker waits for its results to be stored.
        let hears = self.health.could_hear_since(before);
        for effect in self.edge.survey(|edge, now| edge.on_tick(now)) {
            let EdgeEffect::Close { session, epoch, how } = effect else { continue };
            if how == Departed::Silent && !hears {
                continue;
            }
            // The others are gone with the next tick too, unless they come back meanwhile. A round that takes too long would look
            // as if the process had stood still.
            if self.turns.left() == 0 || began.elapsed() >= self.settings.reap_every {
                break;
            }
            match how {
                Departed::Left => tracing::info!(session = %session, "drained worker left"),
                Departed::Silent => {
                    tracing::warn!(session = %session, "worker session went silent; its attempts are requeued");
                }
            }
            self.close_each(&session, epoch).await?;
        }
        overdue
    }

    /// The worker enforces timeouts first; this catches workers that do not.
    async fn reap_overdue(&self, heard_since: Instant) -> Result<(), StoreError> {
        let now = self.ports.clock.now();
        let (mut late, mut unstarted) = (Vec::new(), Vec::new());
        let (late_by, heard_since) = (now - self.settings.timeout_grace, self.edge.moment(heard_since));
        for job in self.edge.survey(|edge, _| edge.overdue(late_by, heard_since)) {
            match job.unstarted_since(now) {
                Some(start_by) => unstarted.push((job, start_by)),
                None => late.push((job, Input::Woken)),
            }
        }
        // The others are overdue with the next tick too, unless they begin meanwhile.
        unstarted.truncate(self.turns.left());
        let turns = self.turns.take(unstarted.len());
        let lost = |((job, start_by), turn): ((Arc<Job>, Timestamp), Duration)| {
            let (token, evidence) = (job.life.attempt.token.clone(), Evidence::Reached(start_by));
            (job, Input::Lost { token, reason: Reason::DispatchLost, evidence, turn })
        };
        late.extend(unstarted.into_iter().zip(turns).map(lost));
        for some in late.chunks(self.settings.batch_max) {
            self.take_overdue(some).await?;
        }
        Ok(())
    }

    async fn take_overdue(&self, overdue: &[(Arc<Job>, Input)]) -> Result<(), StoreError> {
        let driven = self.drive(overdue.to_vec()).await?;
        for ((held, _), outcome) in overdue.iter().zip(driven) {
            match outcome {
                Ok(job) => {
                    let failure = job.life.last_error.as_ref();
                    self.metrics.reaped(failure.map_or(Reason::ExecutionTimeout, |failure| failure.reason), 1);
                }
                Err(Undriven::Illegal(Illegal::Superseded | Illegal::Terminal(_))) => self.stop_held(held, held).await,
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// An attempt that is held here was ended by another process. What is known of the job now says why.
    pub(crate) async fn stop_held(&self, held: &Job, now: &Job) {
        let Some(binding) = &held.life.attempt.binding else { return };
        let token = &held.life.attempt.token;
        let stop = |edge: &mut EdgeState, at| edge.on_superseded(&binding.session, token, now, at);
        let (is_leaving, effects) = self.edge.step_with(stop);
        self.perform(effects).await;
        if !is_leaving {
            self.let_go(&binding.session, vec![token.clone()]).await;
            self.free_limits(vec![token.clone()]).await;
        }
    }

    /// Like `close_and_lose`, but a corrupt or refused row is logged and skipped so that other sessions still close. It is tried again
    /// with the next round.
    pub(crate) async fn close_each(&self, session: &SessionId, epoch: u64) -> Result<(), StoreError> {
        match self.close_and_lose(session, epoch).await {
            Err(error) if error.is_damage() => {
                self.health.store_failed(&error);
                Ok(())
            }
            closed => closed,
        }
    }

    /// Closes the session in the Store unless it attached again, then requeues what it held.
    pub(crate) async fn close_and_lose(&self, session: &SessionId, epoch: u64) -> Result<(), StoreError> {
        let closed = self.ports.store.close_session(session, epoch).await?;
        let left = self.edge.step(|edge, _| edge.on_closed(session, epoch));
        if closed {
            self.free_limits(self.edge.ask(|edge, _| edge.forget_stranger(session, epoch))).await;
            self.follow_up(left).await?;
            self.lose_all(session, epoch).await?;
        }
        // Else it attached elsewhere, with what it has not let go of: the process that holds it now frees that.
        Ok(())
    }

    /// Requeues what a closed session still holds, as far as it may run again soon. The round that closes edges finds the rest.
    pub(crate) async fn lose_all(&self, session: &SessionId, epoch: u64) -> Result<(), StoreError> {
        let evidence = Evidence::Closed { session: session.clone(), epoch };
        let bound = self.ports.store.bound(std::slice::from_ref(session)).await?;
        let ids: Vec<JobId> = bound.into_iter().map(|(_, id)| id).collect();
        for page in ids.chunks(self.settings.batch_max) {
            let soon = &page[..page.len().min(self.turns.left())];
            if soon.is_empty() {
                break;
            }
            let jobs = self.load_each(soon).await?.into_iter().filter_map(ReadRow::there);
            // What was bound a moment ago may be held by another one by now.
            let held = jobs.filter(|job| is_held_by(job, session)).map(Arc::new).collect();
            self.lose(session, held, &evidence).await?;
        }
        Ok(())
    }

    /// What rounds before this one, or processes that died over it, left with closed sessions.
    pub(super) async fn lose_rest(&self) -> Result<(), StoreError> {
        let rest = self.ports.store.closed_holding().await?;
        let (until, mut lost) = (self.give_way_at(), Ok(()));
        for row in rest {
            if self.turns.left() == 0 || Instant::now() >= until {
                break;
            }
            match self.lose_all(&row.session, row.epoch).await {
                Err(error) if !error.is_damage() => return Err(error),
                one => lost = lost.and(one),
            }
        }
        lost
    }
}

fn is_held_by(job: &Job, session: &SessionId) -> bool {
    job.holder().is_some_and(|binding| binding.session == *session)
}
