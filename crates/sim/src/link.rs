//! What stands between a process and everything else. It can be cut off from the servers while workers and clients still reach
//! it, and it can stand still: whatever it asks or is told goes on later, as if nothing had been.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    CutOff,
    Stalled,
}

/// Of one process. Trouble ends by itself.
#[derive(Clone, Default)]
pub(crate) struct Link(Arc<Mutex<Option<(Instant, Trouble)>>>);

impl Link {
    pub(crate) fn disturb(&self, trouble: Trouble, until: Instant) {
        *self.0.lock() = Some((until, trouble));
    }

    fn until(&self, trouble: Trouble) -> Option<Instant> {
        let now = Instant::now();
        let disturbed = *self.0.lock();
        disturbed.filter(|(until, kind)| *kind == trouble && now < *until).map(|(until, _)| until)
    }

    /// Whether nothing that the process says to a server arrives.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.until(Trouble::CutOff).is_some()
    }

    /// Waits until the process does not stand still. How long that took.
    pub(crate) async fn thawed(&self) -> Duration {
        let asked = Instant::now();
        while let Some(until) = self.until(Trouble::Stalled) {
            tokio::time::sleep_until(until).await;
        }
        asked.elapsed()
    }
}
