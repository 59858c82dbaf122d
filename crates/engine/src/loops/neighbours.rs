//! What other processes do that concerns this one: workers that attached there, attempts held here that ended there, and workers
//! here that an operator drained through another gateway.
//!
//! A ring says which jobs moved; a look at everything that is held, every few seconds, finds what no ring told of.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::edge::{EdgeState, RemoteSession};
use lockgate_core::ids::{JobId, SessionId};
use lockgate_core::job::{Job, JobState};
use lockgate_ports::{Bell, SessionRow, StoreError};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::Inner;
use crate::health;

/// Rings are gathered this long, so that a busy neighbour does not make every one of them cost a look.
const GATHER: Duration = Duration::from_millis(20);

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let mut rings = inner.ports.bus.overhear();
    let mut look_at = Instant::now();
    loop {
        let mut moved = BTreeSet::new();
        health::idle(inner.settings.edge_renew);
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            jobs = rings.next() => moved.extend(jobs.iter().cloned()),
            () = tokio::time::sleep_until(look_at) => {}
        }
        health::progress();
        // Rings never stop under load, and the look is for what they did not tell.
        let due = moved.is_empty() || Instant::now() >= look_at;
        let gathered = Instant::now() + GATHER;
        while !due && let Ok(jobs) = tokio::time::timeout_at(gathered, rings.next()).await {
            moved.extend(jobs.iter().cloned());
        }
        let looked = if due || moved.iter().any(Bell::is_sessions) {
            look_at = Instant::now() + health::jittered(inner.settings.edge_renew);
            inner.neighbours_once().await
        } else {
            inner.stop_moved(inner.edge.look(|edge| edge.held_of(&moved))).await
        };
        if let Err(error) = looked {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("neighbours");
            tracing::warn!(%error, "changes by other processes could not be read; trying again with the next tick");
        }
    }
}

impl Inner {
    pub(crate) async fn neighbours_once(&self) -> Result<(), StoreError> {
        let own = self.edge.id();
        let open = self.ports.store.open_sessions().await?;
        self.cut_overtaken(&open).await;
        let (here, others): (Vec<_>, Vec<_>) = open.into_iter().partition(|row| row.edge == own);
        let others = others.into_iter().filter(|row| !row.edge_closed).map(remote);
        self.edge.ask(|edge, now| edge.meet(others, now));
        let leaving: Vec<SessionId> = here.iter().filter(|row| row.sent_away).map(|row| row.session.clone()).collect();
        let effects = self.edge.step(|edge, _| edge.on_sent_away(&leaving));
        self.perform(effects).await;
        self.close_unknown(here).await?;
        // Taken before the Store is asked: what is dispatched meanwhile is in neither or in both.
        let held = self.edge.look(EdgeState::held_by_session);
        let sessions: Vec<SessionId> = held.iter().map(|(session, _)| session.clone()).collect();
        if sessions.is_empty() {
            return Ok(());
        }
        let bound: BTreeSet<(SessionId, JobId)> = self.ports.store.bound(&sessions).await?.into_iter().collect();
        let unbound = |session: &SessionId, job: &Arc<Job>| !bound.contains(&(session.clone(), job.request.job_id.clone()));
        let gone = held
            .into_iter()
            .flat_map(|(session, jobs)| jobs.into_iter().filter(|job| unbound(&session, job)).collect::<Vec<_>>());
        self.stop_moved(gone.collect()).await
    }

    /// Ends the streams of sessions that attached anew without this process having been told of it.
    pub(super) async fn cut_overtaken(&self, open: &[SessionRow]) {
        let effects = self.edge.step(|edge, _| edge.on_overtaken(open.iter().map(|row| (&row.session, row.epoch))));
        self.perform(effects).await;
    }

    /// Stops attempts that are held here and that the Store no longer counts.
    async fn stop_moved(&self, held: Vec<Arc<Job>>) -> Result<(), StoreError> {
        if held.is_empty() {
            return Ok(());
        }
        let ids: Vec<JobId> = held.iter().map(|job| job.request.job_id.clone()).collect();
        let stored = self.load_each(&ids).await?;
        for (held, stored) in held.iter().zip(stored) {
            let Some(stored) = stored.there().filter(|stored| is_over(held, stored)) else { continue };
            self.stop_held(held, &stored).await;
        }
        Ok(())
    }
}

fn remote(row: SessionRow) -> RemoteSession {
    let SessionRow { session, epoch, edge, profile, .. } = row;
    RemoteSession { session, epoch, edge, profile }
}

/// Whether an attempt that is held here was ended by another process. One that is still being dispatched was not.
fn is_over(held: &Job, stored: &Job) -> bool {
    let same = stored.life.attempt.token == held.life.attempt.token;
    let session = |job: &Job| job.life.attempt.binding.as_ref().map(|binding| binding.session.clone());
    let on_its_way = same && stored.state() == JobState::Scheduled;
    let counts = same && stored.state().is_held() && session(stored) == session(held);
    !on_its_way && !counts
}
