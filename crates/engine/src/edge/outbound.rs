//! What waits to be sent to a worker. A worker that never reads it is given up: it would wait in memory for as long as the worker beats.

use lockgate_core::edge::ToWorker;
use lockgate_core::ids::WorkerId;
use lockgate_core::limits::INVENTORY_MAX;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::watch;

/// Messages that may wait: of everything that a worker may hold it can be told at once. A worker that drains its
/// stream stays far below this: most messages answer one of its own.
const WAITING_MAX: usize = INVENTORY_MAX;

/// The way to a worker. Dropped when its stream ends: the far end hears of it then.
pub(super) struct Outbound {
    worker: WorkerId,
    waiting: Sender<ToWorker>,
    /// Dropped with the rest: that is how the other direction hears of it.
    _open: watch::Sender<()>,
    /// Counts those that were given up.
    cut: Counter,
}

/// The far end of a stream.
pub(super) struct FarEnd {
    /// What must be sent to the worker.
    pub(super) waiting: Receiver<ToWorker>,
    /// Closed once the stream was given up.
    pub(super) open: watch::Receiver<()>,
}

impl Outbound {
    /// For a worker that says it holds so many attempts, each of which may have to be stopped before its stream is read.
    pub(super) fn open(worker: WorkerId, held: usize, cut: Counter) -> (Self, FarEnd) {
        let (waiting, far_end) = channel(WAITING_MAX + held);
        let (opened, open) = watch::channel(());
        (Self { worker, waiting, _open: opened, cut }, FarEnd { waiting: far_end, open })
    }

    /// Says something. False if the stream takes no more. What is not heard is no loss: the worker attaches anew, and what it holds is
    /// compared then.
    pub(super) fn tell(&self, message: ToWorker) -> bool {
        match self.waiting.try_send(message) {
            Ok(()) => true,
            Err(TrySendError::Closed(_)) => false,
            Err(TrySendError::Full(_)) => {
                tracing::warn!(
                    worker_id = %self.worker,
                    waiting = self.waiting.max_capacity(),
                    "worker stream closed: the worker does not read; restart it if it does not reconnect"
                );
                self.cut.inc();
                false
            }
        }
    }

    /// Whether its reader went away.
    pub(super) fn is_unread(&self) -> bool {
        self.waiting.is_closed()
    }
}
