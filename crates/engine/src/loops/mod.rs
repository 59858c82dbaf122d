//! What happens by itself. One file a loop; each has a `*_once` that does one bounded round.

mod breakers;
mod bypassed;
mod deadlines;
mod dispatch;
mod due;
mod edges;
mod families;
mod health;
mod lanes;
mod leads;
mod ledger;
mod levels;
mod limits;
mod meters;
mod neighbours;
mod outbox;
mod pending;
mod placing;
mod policies;
mod reap;
mod recover;
mod refill;
mod registry;
mod reoffer;
mod requeue_pacer;
mod retention;
mod round;
mod runs;
mod scans;
mod schedules;
mod seals;
mod sending;
mod stamps;
mod starts;
mod watched;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::time::Timestamp;
use lockgate_ports::StoreError;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

pub(crate) use health::StoreHealth;
pub(crate) use leads::{Lead, Leadership};
pub(crate) use limits::HeldLimit;
pub(crate) use outbox::OutboxRelay;
pub(crate) use placing::Hopeless;
pub(crate) use recover::recover;
pub(crate) use requeue_pacer::RequeuePacer;
pub(crate) use seals::AuditSealer;
pub(crate) use watched::WatchedEdges;

use crate::health::{beating, idle, jittered, progress};
use crate::metrics::LoopMetrics;
use crate::{Inner, Settings};

/// Starts the loops of this process's roles. All end soon after `stop` turns true.
pub(crate) fn spawn(inner: &Arc<Inner>, running: &mut JoinSet<()>, recovered: Timestamp, stop: &watch::Receiver<bool>) {
    let Settings { roles, exclusive_store, .. } = inner.settings;
    let mut starting = Starting { inner, running, stop };
    starting.start("policies", policies::run);
    starting.start("feed", refill::run);
    starting.start("scans", scans::run);
    starting.start("edges", edges::run);
    starting.start("families", families::run);
    starting.start("levels", levels::run);
    starting.start("breakers", breakers::run);
    // In every process: each has a clock of its own that may have been wrong.
    starting.start("stamps", stamps::run);
    if !exclusive_store {
        starting.start("lanes", lanes::run);
        starting.start("neighbours", neighbours::run);
        starting.start("registry", registry::run);
    }
    if let Some(counters) = inner.ports.counters.clone() {
        starting.start("bypassed", |inner, stop| bypassed::run(inner, counters, stop));
    }
    if !inner.ports.outlets.is_empty() {
        starting.start("outbox", |inner, stop| inner.outbox.clone().run(stop));
    }
    // Processes that accept submits: by calls, or over the bus.
    if roles.gateway || roles.scheduler {
        starting.start("meters", meters::run);
    }
    if roles.gateway {
        let (claimed, batches) = mpsc::channel(1);
        starting.start("dispatch", |inner, stop| dispatch::run(inner, claimed, stop));
        starting.start("sending", |inner, stop| sending::run(inner, batches, stop));
        starting.start("starts", starts::run);
        starting.start("reap", reap::run);
    }
    if roles.orchestrator {
        starting.start("runs", runs::run);
        starting.start("schedules", schedules::run);
    }
    if roles.scheduler {
        starting.start("due", |inner, stop| due::run(inner, recovered, stop));
        starting.start("pending", pending::run);
        starting.start("deadlines", deadlines::run);
        starting.start("reoffer", reoffer::run);
        starting.start("retention", retention::run);
        starting.start("ledger", ledger::run);
        starting.start("seals", |inner, stop| inner.sealer.clone().run(stop));
        starting.start("limits", limits::run);
        starting.start("placing", placing::run);
    }
}

/// What every loop is started with.
struct Starting<'a> {
    inner: &'a Arc<Inner>,
    running: &'a mut JoinSet<()>,
    stop: &'a watch::Receiver<bool>,
}

impl Starting<'_> {
    /// Under the name by which `/monitor/health` speaks of it.
    fn start<F>(&mut self, name: &'static str, run: impl FnOnce(Arc<Inner>, watch::Receiver<bool>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut seed = [0; 8];
        self.inner.ports.entropy.fill(&mut seed);
        let (leadership, pulse) = (self.inner.leadership.clone(), self.inner.watch.pulse(name, u64::from_be_bytes(seed)));
        let running = run(self.inner.clone(), self.stop.clone());
        self.running.spawn(async move {
            beating(pulse.clone(), running).await;
            leadership.hand_over(pulse.take_led()).await;
        });
    }
}

/// Tells of rounds that failed.
#[derive(Clone)]
pub(crate) struct LoopReports {
    pub(crate) health: Arc<StoreHealth>,
    pub(crate) metrics: LoopMetrics,
}

impl LoopReports {
    /// The Store did not do what a round of this loop asked for.
    pub(super) fn failed(&self, name: &'static str, error: &StoreError) {
        self.health.store_failed(error);
        self.metrics.failed(name);
    }
}

/// Waits for a reason to run, the next tick, or the end. False means: end.
async fn wait(stop: &mut watch::Receiver<bool>, tick: Duration, reason: impl Future<Output = ()>) -> bool {
    idle(tick);
    let goes_on = tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => false,
        () = reason => true,
        () = tokio::time::sleep(tick) => true,
    };
    progress();
    goes_on
}

/// Waits for the next tick, which may come a little early. False means: end.
async fn tick(stop: &mut watch::Receiver<bool>, every: Duration) -> bool {
    wait(stop, jittered(every), std::future::pending()).await
}
