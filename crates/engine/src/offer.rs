//! What is due goes into the lanes; what is not is left to the due loop.
//!
//! The Store lists for the due loop what its own clock had yet to reach at the commit. Whatever is not on that list must be
//! offered by whoever committed it, or nobody comes to it before all lanes are compared.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::job::Job;
use lockgate_core::time::Timestamp;
use lockgate_ports::Bell;

use crate::Inner;
use crate::health::progress;

/// How far the Store's clock is taken to be ahead while it cannot be asked: as far as `doctor` lets pass. What is offered too
/// early is given back by whoever claims it, until it is due there.
const APART_MAX: Duration = Duration::from_secs(5);

impl Inner {
    /// Puts jobs that are due into their lanes, and tells edges.
    pub(crate) async fn offer(&self, due: Vec<Arc<Job>>) {
        progress();
        if !due.is_empty() {
            self.ports.lanes.offer(due).await;
            self.ports.bus.ring(vec![Bell::Lanes]).await;
        }
    }

    /// Offers those of some committed jobs that are due by either clock. To a clock behind the Store's, a short delay may seem
    /// to lie ahead that was over at the commit. So the Store is asked, and after the commit: what its clock has not reached
    /// even then, it had not reached before. That is on the list, and ahead of everything that was read from there.
    ///
    /// If instead the answer to a commit said what was listed, nobody would be told it of a commit whose outcome is unknown,
    /// and one that outlasts a delay is listed behind what was read. If whoever decides the delay also said what to list, a
    /// clock behind the Store's would have it listed there, too.
    pub(crate) async fn offer_due(&self, jobs: Vec<Arc<Job>>) {
        let now = self.ports.clock.now();
        let (due, later): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| job.life.due_at <= now);
        self.offer(due).await;
        if later.is_empty() {
            return;
        }
        let reached = self.reached(now).await;
        self.offer(later.into_iter().filter(|job| job.life.due_at <= reached).collect()).await;
    }

    /// The Store's own time, or one that it has hardly reached.
    async fn reached(&self, now: Timestamp) -> Timestamp {
        match self.ports.store.next_schedule().await {
            Ok((_, reached)) => reached,
            Err(error) => {
                self.health.store_failed(&error);
                tracing::warn!(%error, "Store time could not be read; jobs due within seconds are offered now");
                now + APART_MAX
            }
        }
    }
}
