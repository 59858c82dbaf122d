//! Claims whenever a bell rings or a place becomes free; once a second even if nothing did.

use std::sync::Arc;

use lockgate_core::ids::PoolName;
use lockgate_core::job::DEFAULT_POOL;
use lockgate_ports::Bell;
use tokio::sync::watch;

use super::wait;
use crate::Inner;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let ear = inner.ports.bus.listen(Bell::Lane(PoolName::from(DEFAULT_POOL)));
    loop {
        loop {
            // Cutting a round short at the end is safe: what it committed is sent when the session attaches again.
            let round = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                round = inner.dispatch_once() => round,
            };
            match round {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    inner.health.store_answered(false);
                    tracing::warn!(%error, "jobs could not be dispatched; trying again in a second");
                    break;
                }
            }
        }
        let reason = async {
            tokio::select! {
                biased;
                () = inner.wake.dispatch.notified() => {}
                () = ear.heard() => {}
            }
        };
        if !wait(&mut stop, inner.settings.idle_claim, reason).await {
            return;
        }
    }
}
