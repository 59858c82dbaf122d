//! Locks that only save work, and the latest snapshot of workers.

use std::collections::BTreeMap;
use std::time::Duration;

use lockgate_core::time::Timestamp;
use parking_lot::Mutex;

use lockgate_ports::registry::{SEEN_LIFE, WorkersSnapshot};

#[derive(Debug, Default)]
pub(super) struct SharedLocks {
    /// Who holds each lock, and until when.
    locks: Mutex<BTreeMap<String, (String, Timestamp)>>,
    snapshot: Mutex<Option<(WorkersSnapshot, Timestamp)>>,
}

impl SharedLocks {
    pub(super) fn hold(&self, lock: &str, holder: &str, now: Timestamp, until: Timestamp) -> bool {
        let mut locks = self.locks.lock();
        let free = locks.get(lock).is_none_or(|(by, until)| by == holder || *until <= now);
        if free {
            locks.insert(lock.to_owned(), (holder.to_owned(), until));
        }
        free
    }

    pub(super) fn let_go(&self, lock: &str, holder: &str) {
        let mut locks = self.locks.lock();
        if locks.get(lock).is_some_and(|(by, _)| by == holder) {
            locks.remove(lock);
        }
    }

    pub(super) fn keep(&self, snapshot: WorkersSnapshot, now: Timestamp) {
        *self.snapshot.lock() = Some((snapshot, now));
    }

    pub(super) fn kept(&self, now: Timestamp) -> Option<(WorkersSnapshot, Duration)> {
        let kept = self.snapshot.lock();
        let (snapshot, at) = kept.as_ref().filter(|(_, at)| now.since(*at) < SEEN_LIFE)?;
        Some((snapshot.clone(), now.since(*at)))
    }
}
