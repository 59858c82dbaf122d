//! Claims whenever a bell rings or a place becomes free; once a second even if nothing did.

use std::sync::Arc;

use std::time::Duration;

use lockgate_ports::Bell;
use tokio::sync::watch;

use super::wait;
use crate::Inner;

/// Clocks have no finer steps.
const SOON: Duration = Duration::from_millis(1);

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let ear = inner.ports.bus.listen(Bell::Lanes);
    loop {
        let mut again_at = None;
        loop {
            // Cutting a round short at the end is safe: what it committed is sent when the session attaches again.
            let round = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                round = inner.dispatch_once() => round,
            };
            match round {
                Ok(round) if round.moved == 0 => {
                    again_at = round.again_at;
                    break;
                }
                Ok(_) => {}
                Err(error) => {
                    inner.health.store_failed(&error);
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
        // A limit by time says when it has room again.
        let room = again_at.map(|at| at.since(inner.ports.clock.now()).max(SOON));
        let rest = room.map_or(inner.settings.idle_claim, |room| room.min(inner.settings.idle_claim));
        if !wait(&mut stop, rest, reason).await {
            return;
        }
    }
}
