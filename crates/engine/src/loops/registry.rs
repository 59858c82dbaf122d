//! What processes know of each other's workers: tells how those fare that are attached here, hears of the others, and keeps a
//! snapshot of all for processes that start.
//!
//! Nothing is decided from it that could harm a job: which workers there are is in the Store, and only their own process sends
//! to them. Jobs that a worker of another process should have are left to it for a moment, and not for longer.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::edge::EdgeState;
use lockgate_ports::{Counters, CountersAway, Sighting, SnapshotWorker, WorkersSnapshot};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::Inner;
use crate::health;
use crate::metrics::SnapshotRound;

/// One process writes the snapshot for all, to save work. Two of them write the same.
const WRITER: &str = "scheduler:snapshot:writer";
const WRITER_TTL: Duration = Duration::from_secs(10);
const SNAPSHOT_EVERY: Duration = Duration::from_secs(5);
/// A writer that comes round in time is not overtaken by one that waits.
const _: () = assert!(SNAPSHOT_EVERY.as_millis() * 2 <= WRITER_TTL.as_millis());

/// Between two words about workers that others choose among, so that a busy gateway says a hundred things a second at most.
const NEWS_EVERY: Duration = Duration::from_millis(10);

/// What comes next.
enum RegistryEvent {
    Stop,
    News,
    Tell,
    Write,
    Heard(Arc<[Sighting]>),
}

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    // Live words are kept from here on; the snapshot says what was said before.
    let mut heard = inner.ports.bus.sightings();
    let counters = inner.ports.counters.clone();
    if let Some(counters) = &counters {
        inner.warm_start(&**counters).await;
    }
    let mut tell_at = Instant::now();
    let mut write_at = tell_at + health::jittered(SNAPSHOT_EVERY);
    let mut news_at = tell_at;
    loop {
        health::idle(inner.settings.beat_every.min(SNAPSHOT_EVERY));
        let next = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => RegistryEvent::Stop,
            () = tokio::time::sleep_until(tell_at) => RegistryEvent::Tell,
            () = tokio::time::sleep_until(write_at) => RegistryEvent::Write,
            () = inner.has_news(news_at) => RegistryEvent::News,
            seen = heard.next() => RegistryEvent::Heard(seen),
        };
        health::progress();
        match next {
            RegistryEvent::Stop => break,
            RegistryEvent::News => {
                news_at = Instant::now() + NEWS_EVERY;
                inner.post(inner.edge.survey(EdgeState::news)).await;
            }
            RegistryEvent::Tell => {
                tell_at = Instant::now() + health::jittered(inner.settings.beat_every);
                inner.tell_of_workers().await;
            }
            RegistryEvent::Write => {
                write_at = Instant::now() + health::jittered(SNAPSHOT_EVERY);
                if let Some(counters) = &counters {
                    inner.snapshot_once(&**counters).await;
                }
            }
            RegistryEvent::Heard(seen) => {
                let leaves_jobs = inner.edge.look(EdgeState::leaves_jobs);
                if inner.edge.ask(|edge, now| edge.saw(seen.iter(), Duration::ZERO, now)) > 0 && leaves_jobs {
                    // Whose they should be may have changed.
                    inner.wake.dispatch.notify_one();
                }
            }
        }
    }
    if let Some(counters) = counters {
        // A process that cannot be told finds out: the lock expires by itself.
        let _ = counters.let_go(&[WRITER], inner.edge.id().as_str()).await;
    }
}

impl Inner {
    /// What others knew a moment ago. Live words win, and the Store decides which workers there are.
    async fn warm_start(&self, counters: &dyn Counters) {
        match counters.kept_workers().await {
            Ok(Some((snapshot, age))) => {
                let seen = snapshot.workers.iter().map(|worker| &worker.seen);
                let warm = self.edge.ask(|edge, now| edge.saw(seen, age, now));
                self.metrics.registry.warmed(warm, age);
                tracing::info!(workers = warm, ?age, "worker registry loaded from the snapshot");
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "worker registry snapshot could not be read; other processes will announce their workers");
            }
        }
    }

    async fn tell_of_workers(&self) {
        let seen = if self.settings.roles.gateway { self.edge.survey(EdgeState::sightings) } else { Vec::new() };
        self.post(seen).await;
    }

    /// Comes when others should hear of a worker, but not before `at`. Safe to use in `select!`: what there is to say is kept.
    async fn has_news(&self, at: Instant) {
        tokio::time::sleep_until(at).await;
        self.edge.has_news().await;
    }

    async fn post(&self, seen: Vec<Sighting>) {
        if !seen.is_empty() {
            self.ports.bus.post(seen).await;
        }
    }

    async fn snapshot_once(&self, counters: &dyn Counters) {
        let round = self.write_snapshot(counters).await;
        let round = round.unwrap_or_else(|error| {
            tracing::debug!(%error, "the snapshot of workers was not written; trying again with the next tick");
            SnapshotRound::Failed
        });
        self.metrics.registry.came_round(round, self.ports.clock.now());
    }

    async fn write_snapshot(&self, counters: &dyn Counters) -> Result<SnapshotRound, CountersAway> {
        let held = counters.hold(&[WRITER], self.edge.id().as_str(), WRITER_TTL).await?;
        if held != [true] {
            return Ok(SnapshotRound::Skipped);
        }
        let workers = self.edge.survey(|edge, now| edge.snapshot(now)).into_iter();
        let workers = workers.map(|(profile, seen)| SnapshotWorker { profile, seen }).collect();
        let snapshot = WorkersSnapshot { workers };
        counters.keep_workers(&snapshot).await?;
        Ok(SnapshotRound::Written { workers: snapshot.workers.len() })
    }
}
