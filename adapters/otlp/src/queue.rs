//! The bounded queue of spans. Putting spans never waits.

use std::collections::VecDeque;

use lockgate_core::trace::Span;
use parking_lot::Mutex;
use tokio::sync::Notify;

pub(crate) struct SpanQueue {
    waiting: Mutex<VecDeque<Span>>,
    room: usize,
    batch: usize,
    /// Signals that a whole batch waits.
    full: Notify,
}

impl SpanQueue {
    pub(crate) fn new(room: usize, batch: usize) -> Self {
        Self { waiting: Mutex::default(), room, batch, full: Notify::new() }
    }

    /// Returns how many spans found no room. The newest are dropped, because a reader needs the start of a trace most.
    pub(crate) fn put(&self, spans: Vec<Span>) -> usize {
        let mut waiting = self.waiting.lock();
        let taken = spans.len().min(self.room.saturating_sub(waiting.len()));
        let dropped = spans.len() - taken;
        waiting.extend(spans.into_iter().take(taken));
        if waiting.len() >= self.batch {
            self.full.notify_one();
        }
        dropped
    }

    pub(crate) fn take(&self) -> Vec<Span> {
        let mut waiting = self.waiting.lock();
        let some = waiting.len().min(self.batch);
        waiting.drain(..some).collect()
    }

    pub(crate) fn has_batch(&self) -> bool {
        self.waiting.lock().len() >= self.batch
    }

    pub(crate) async fn full(&self) {
        self.full.notified().await;
    }
}
