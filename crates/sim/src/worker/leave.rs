//! A worker that an operator sends away: it gives back what has not begun, ends the rest, and leaves when it is dismissed.

use lockgate_core::job::Outcome;
use lockgate_engine::FromWorker;

use super::WorkerLife;

impl WorkerLife {
    /// Answered whenever it is said: whoever holds the session now may not know yet.
    pub(super) fn drain(&mut self, outbox: &mut FromWorker) {
        (self.draining, outbox.draining) = (true, true);
        self.interrupt_line(outbox);
    }

    /// Begins nothing of what waits. While it drains, that is what was sent before anybody heard that it does.
    pub(super) fn interrupt_line(&mut self, outbox: &mut FromWorker) {
        for waiting in std::mem::take(&mut self.line) {
            self.conclude_unbegun(&waiting, Outcome::Interrupted, outbox);
        }
    }
}
