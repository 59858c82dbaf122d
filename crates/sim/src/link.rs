//! The link between a process and its surroundings. The process can be cut off from the servers while workers and clients
//! still reach it, and it can stall: its calls and messages then continue later as if nothing had happened.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    CutOff,
    Stalled,
}

/// The trouble of one process, which ends by itself.
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

    /// Whether no call of the process reaches a server.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.until(Trouble::CutOff).is_some()
    }

    /// Waits while the process is stalled. Returns how long.
    pub(crate) async fn thawed(&self) -> Duration {
        let asked = Instant::now();
        while let Some(until) = self.until(Trouble::Stalled) {
            tokio::time::sleep_until(until).await;
        }
        asked.elapsed()
    }
}
