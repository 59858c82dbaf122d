//! A worker that an operator drains: it returns unstarted assignments, finishes the others, and leaves when it is dismissed.

use lockgate_core::job::Outcome;
use lockgate_engine::FromWorker;

use super::WorkerLife;

impl WorkerLife {
    /// Answered each time, because the process that holds the session now may not know yet.
    pub(super) fn drain(&mut self, outbox: &mut FromWorker) {
        (self.draining, outbox.draining) = (true, true);
        self.interrupt_line(outbox);
    }

    /// Returns all waiting assignments unstarted. While the worker drains, these were sent before the server knew that it
    /// drains.
    pub(super) fn interrupt_line(&mut self, outbox: &mut FromWorker) {
        for waiting in std::mem::take(&mut self.line) {
            self.conclude_unbegun(&waiting, Outcome::Interrupted, outbox);
        }
    }
}
