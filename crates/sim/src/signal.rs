//! A value that many tasks wait on and that wakes them in the order they came.
//!
//! The runtime's own watch channel spreads its waiters over random shards, which would make a seed tell two stories.

use parking_lot::Mutex;
use tokio::sync::Notify;

pub(crate) struct Signal<T> {
    value: Mutex<T>,
    changed: Notify,
}

impl<T> Signal<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), changed: Notify::new() }
    }

    pub(crate) fn set(&self, value: T) {
        *self.value.lock() = value;
        self.changed.notify_waiters();
    }

    pub(crate) fn with<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.value.lock())
    }

    /// Waits until `look` finds something.
    pub(crate) async fn wait<R>(&self, look: impl Fn(&T) -> Option<R>) -> R {
        loop {
            let changed = self.changed.notified();
            if let Some(found) = self.with(&look) {
                return found;
            }
            changed.await;
        }
    }
}
