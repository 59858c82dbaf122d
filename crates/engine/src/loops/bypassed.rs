//! One total, for all replicas, of attempts that ran unjudged: what operators watch where they watch the breaker.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lockgate_ports::Counters;
use tokio::sync::watch;

use super::tick;
use crate::Inner;

const TOTAL: &str = "scheduler:input_fail_open_total";
/// Many bypasses are one addition, and none waits for it.
const EVERY: Duration = Duration::from_secs(1);

pub(super) async fn run(inner: Arc<Inner>, counters: Arc<dyn Counters>, mut stop: watch::Receiver<bool>) {
    while tick(&mut stop, EVERY).await {
        inner.bypassed_once(&*counters).await;
    }
    inner.bypassed_once(&*counters).await;
}

impl Inner {
    /// What could not be added is kept for the next time. It may have been added all the same: an alarm may ring twice, but
    /// not stay silent.
    async fn bypassed_once(&self, counters: &dyn Counters) {
        let count = self.bypassed.swap(0, Ordering::Relaxed);
        if count > 0 && counters.add(TOTAL, count).await.is_err() {
            self.bypassed.fetch_add(count, Ordering::Relaxed);
        }
    }
}
