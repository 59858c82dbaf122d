//! What the engine knows about its own condition.

use lockgate_ports::StoreError;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Silence of workers counts only while we could have heard them, and edges are closed only on time in which our own
/// Store calls all succeeded.
pub(crate) struct Health {
    /// When this process began to listen: what was before nobody could hear.
    began: Instant,
    last_failure: Mutex<Option<Instant>>,
}

impl Default for Health {
    fn default() -> Self {
        Self { began: Instant::now(), last_failure: Mutex::new(None) }
    }
}

impl Health {
    /// A row that cannot be read says nothing about whether results can be stored: it would keep everybody from being called
    /// late or lost for as long as it is there.
    pub(crate) fn store_failed(&self, error: &StoreError) {
        if !matches!(error, StoreError::Corrupt(_)) {
            *self.last_failure.lock() = Some(Instant::now());
        }
    }

    /// Whether this process has been here since `since` and no Store call failed.
    pub(crate) fn store_fine_since(&self, since: Instant) -> bool {
        self.began <= since && self.no_failure_since(since)
    }

    /// Whether no Store call of this process failed since.
    pub(crate) fn no_failure_since(&self, since: Instant) -> bool {
        self.last_failure.lock().is_none_or(|failed| failed < since)
    }
}
