//! What happens by itself. One file a loop; each has a `*_once` that does one bounded round.

mod bypassed;
mod deadlines;
mod dispatch;
mod due;
mod edges;
mod feed;
mod health;
mod lanes;
mod leads;
mod ledger;
mod levels;
mod limits;
mod neighbours;
mod pending;
mod placing;
mod policies;
mod reap;
mod recover;
mod reoffer;
mod retention;
mod runs;
mod scans;
mod schedules;
mod seals;
mod starts;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::time::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub(crate) use health::Health;
pub(crate) use leads::Lead;
pub(crate) use placing::Hopeless;
pub(crate) use recover::recover;

use crate::{Inner, Settings};

/// Starts the loops of this process's roles. All end soon after `stop` turns true.
pub(crate) fn spawn(inner: &Arc<Inner>, running: &mut JoinSet<()>, recovered: Timestamp, stop: &watch::Receiver<bool>) {
    let Settings { roles, exclusive_store, .. } = inner.settings;
    running.spawn(policies::run(inner.clone(), stop.clone()));
    running.spawn(feed::run(inner.clone(), stop.clone()));
    running.spawn(scans::run(inner.clone(), stop.clone()));
    running.spawn(edges::run(inner.clone(), stop.clone()));
    running.spawn(levels::run(inner.clone(), stop.clone()));
    if !exclusive_store {
        running.spawn(lanes::run(inner.clone(), stop.clone()));
        running.spawn(neighbours::run(inner.clone(), stop.clone()));
    }
    if let Some(counters) = inner.ports.counters.clone() {
        running.spawn(bypassed::run(inner.clone(), counters, stop.clone()));
    }
    if roles.gateway {
        running.spawn(dispatch::run(inner.clone(), stop.clone()));
        running.spawn(starts::run(inner.clone(), stop.clone()));
        running.spawn(reap::run(inner.clone(), stop.clone()));
    }
    if roles.orchestrator {
        running.spawn(runs::run(inner.clone(), stop.clone()));
        running.spawn(schedules::run(inner.clone(), stop.clone()));
    }
    if roles.scheduler {
        running.spawn(due::run(inner.clone(), recovered, stop.clone()));
        running.spawn(pending::run(inner.clone(), stop.clone()));
        running.spawn(deadlines::run(inner.clone(), stop.clone()));
        running.spawn(reoffer::run(inner.clone(), stop.clone()));
        running.spawn(retention::run(inner.clone(), stop.clone()));
        running.spawn(ledger::run(inner.clone(), stop.clone()));
        running.spawn(seals::run(inner.clone(), stop.clone()));
        running.spawn(limits::run(inner.clone(), stop.clone()));
        running.spawn(placing::run(inner.clone(), stop.clone()));
    }
}

/// Waits for a reason to run, the next tick, or the end. False means: end.
async fn wait(stop: &mut watch::Receiver<bool>, tick: Duration, reason: impl Future<Output = ()>) -> bool {
    tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => false,
        () = reason => true,
        () = tokio::time::sleep(tick) => true,
    }
}

/// Waits for the next tick. False means: end.
async fn tick(stop: &mut watch::Receiver<bool>, every: Duration) -> bool {
    wait(stop, every, std::future::pending()).await
}
