//! Operators: they pause and resume the pool, and drain workers.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::PoolName;
use lockgate_core::pools::{Closed, DEFAULT_POOL, PoolStates};

use crate::faults::Fault;
use crate::people::operator;
use crate::world::SimWorld;

/// The longest time between two of their acts.
const EVERY_MS: u64 = 10_000;
/// How long a pause lasts at most.
const PAUSED_MS: u64 = 8_000;

/// Tells the witness which pool states forbid a dispatch.
pub(crate) fn explain_pauses(world: &SimWorld) {
    let paused = PoolStates::default().with(PoolName::from(DEFAULT_POOL), Some(Closed::Paused));
    world.witness.expect_closed(paused.id());
}

/// Never returns: a pause that took effect when faults had stopped must be undone, or no job could end.
pub(crate) async fn operate(world: Arc<SimWorld>) {
    loop {
        tokio::time::sleep(world.faults.millis(EVERY_MS)).await;
        if world.faults.inject(500, Fault::PoolPaused) {
            set_pool(&world, Some(Closed::Paused)).await;
            tokio::time::sleep(world.faults.millis(PAUSED_MS)).await;
        }
        set_pool(&world, None).await;
        if world.faults.inject(300, Fault::WorkerDrained) {
            drain_one(&world).await;
        }
    }
}

/// In the end the pool must be open, so that every job can end.
pub(crate) async fn open(world: &SimWorld) {
    while !set_pool(world, None).await {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Whether it was acknowledged.
async fn set_pool(world: &SimWorld, state: Option<Closed>) -> bool {
    let (process, caller, pool) = (world.process().await, operator(), PoolName::from(DEFAULT_POOL));
    tokio::select! {
        biased;
        () = process.lifeline.died() => false,
        set = process.engine.set_pool_state(&caller, &pool, state) => set.is_ok(),
    }
}

/// Drains a worker, wherever it is attached and even if it is gone already.
async fn drain_one(world: &SimWorld) {
    let (process, caller) = (world.process().await, operator());
    let workers = process.engine.workers();
    let chosen = usize::try_from(world.faults.below(workers.len() as u64)).unwrap_or(0);
    let Some(worker) = workers.get(chosen).map(|view| view.profile.worker.clone()) else { return };
    tokio::select! {
        biased;
        () = process.lifeline.died() => {}
        // A failing Store is part of the story.
        _ = process.engine.drain_worker(&caller, &worker) => {}
    }
}
