//! Refills windows that run low from the Store.

use std::sync::Arc;

use lockgate_ports::{Refill, StoreError};
use tokio::sync::watch;

use super::wait;
use crate::Inner;
use crate::health::{jittered, progress};

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    // Others may empty the windows as fast as they are filled.
    while !*stop.borrow() {
        match inner.feed_once().await {
            Ok(0) => {}
            Ok(_) => {
                inner.wake.dispatch.notify_one();
                progress();
                continue;
            }
            Err(error) => {
                inner.health.store_failed(&error);
                inner.metrics.loops.failed("feed");
                tracing::warn!(%error, "ready jobs could not be read; trying again in a second");
            }
        }
        if !wait(&mut stop, jittered(inner.settings.idle_claim), inner.wake.feed.notified()).await {
            return;
        }
    }
}

impl Inner {
    /// Answers every hungry lane once. How many jobs came in.
    pub(crate) async fn feed_once(&self) -> Result<usize, StoreError> {
        let mut fed = 0;
        let mut failed = None;
        for asked in self.ports.lanes.refill_requests().await {
            match self.ports.store.ready(&asked.lane, asked.after, asked.limit).await {
                Ok(jobs) => {
                    fed += jobs.len();
                    self.metrics.read_ready(jobs.len());
                    self.ports.lanes.refill(Refill { asked, jobs: jobs.into_iter().map(Arc::new).collect() }).await;
                }
                // One lane's damage is not another lane's hunger.
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if fed == 0 => Err(error),
            _ => Ok(fed),
        }
    }
}
