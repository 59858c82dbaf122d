//! Commits and sends what was claimed, one batch after another, while the next is claimed.

use std::future::pending;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::{tick, wait};
use crate::Inner;
use crate::edge::Batch;

pub(super) async fn run(inner: Arc<Inner>, mut batches: mpsc::Receiver<Batch>, mut stop: watch::Receiver<bool>) {
    loop {
        let mut next = None;
        let claimed = async {
            match batches.recv().await {
                Some(batch) => next = Some(batch),
                // The claiming loop has ended: the process is about to stop.
                None => pending().await,
            }
        };
        if !wait(&mut stop, inner.settings.idle_claim, claimed).await {
            break;
        }
        let Some(batch) = next else { continue };
        if batch.is_old() {
            inner.take_back(batch).await;
            continue;
        }
        // Cutting it short at the end is safe: what it committed is sent when the session attaches again.
        let sent = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            sent = inner.send_once(batch) => sent,
        };
        if let Err(error) = sent {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("sending");
            tracing::warn!(%error, "jobs could not be dispatched; trying again in a second");
            // Others may have it meanwhile, and it was claimed after what just went back.
            if let Ok(batch) = batches.try_recv() {
                inner.take_back(batch).await;
            }
            if !tick(&mut stop, inner.settings.idle_claim).await {
                break;
            }
        }
    }
    batches.close();
    while let Some(batch) = batches.recv().await {
        inner.take_back(batch).await;
    }
}
