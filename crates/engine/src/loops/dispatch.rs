//! Claims whenever a bell rings or a place becomes free; once a second even if nothing did.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use lockgate_ports::Bell;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::{tick, wait};
use crate::Inner;
use crate::edge::Batch;
use crate::health::jittered;

/// Clocks have no finer steps.
const SOON: Duration = Duration::from_millis(1);

pub(super) async fn run(inner: Arc<Inner>, batches: mpsc::Sender<Batch>, mut stop: watch::Receiver<bool>) {
    let ear = inner.ports.bus.listen(Bell::Lanes);
    loop {
        // Claimed sooner, it would wait where no worker can get it. What becomes free meanwhile is claimed together.
        let mut room = None;
        while room.is_none() {
            let free = async {
                match batches.reserve().await {
                    Ok(permit) => room = Some(permit),
                    // The sending loop has ended: the process is about to stop.
                    Err(_) => pending().await,
                }
            };
            if !wait(&mut stop, jittered(inner.settings.idle_claim), free).await {
                return;
            }
        }
        let rest = inner.wake.claim_at.lock().take().map(|at| at.saturating_duration_since(Instant::now()));
        if let Some(rest) = rest
            && !tick(&mut stop, rest).await
        {
            return;
        }
        // Cutting a round short at the end is safe: what it claimed goes back when the claims' time is up.
        let batch = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            batch = inner.claim_once() => batch,
        };
        let (again, again_at) = (batch.is_worth_another(), batch.again_at);
        if let Some(room) = room.filter(|_| !batch.is_empty()) {
            room.send(batch);
        }
        if again {
            continue;
        }
        let reason = async {
            tokio::select! {
                biased;
                () = inner.wake.dispatch.notified() => {}
                () = ear.heard() => {}
            }
        };
        // A limit by time says when it has room again, and what came early when it is due.
        let room = again_at.map(|at| at.since(inner.ports.clock.now()).max(SOON));
        let idle = jittered(inner.settings.idle_claim);
        let rest = room.map_or(idle, |room| room.min(idle));
        if !wait(&mut stop, rest, reason).await {
            return;
        }
    }
}
