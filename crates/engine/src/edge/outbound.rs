//! What waits to be sent to a worker. Who never reads it is given up: it would wait in memory for as long as the worker beats.

use lockgate_core::ids::WorkerId;
use lockgate_core::limits::INVENTORY_MAX;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::watch;

use super::ToWorker;

/// Messages that may wait: of everything that a worker may hold it can be told at once. A worker that drains its
/// stream stays far below this: most messages answer one of its own.
const WAITING_MAX: usize = INVENTORY_MAX;

/// The way to a worker.
pub(super) struct Outbound {
    worker: WorkerId,
    /// Absent while no stream is attached.
    stream: Option<Stream>,
    /// Counts those that were given up.
    cut: Counter,
}

struct Stream {
    waiting: Sender<ToWorker>,
    /// Dropped with the rest: that is how the other direction hears of it.
    _open: watch::Sender<()>,
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
        let (sender, waiting) = channel(WAITING_MAX + held);
        let (opened, open) = watch::channel(());
        let stream = Some(Stream { waiting: sender, _open: opened });
        (Self { worker, stream, cut }, FarEnd { waiting, open })
    }

    /// Says something, if there is a stream. What is not heard is no loss: the worker attaches anew, and what it holds is
    /// compared then.
    pub(super) fn tell(&mut self, message: ToWorker) {
        let Some(stream) = &self.stream else { return };
        if let Err(TrySendError::Full(_)) = stream.waiting.try_send(message) {
            tracing::warn!(
                worker_id = %self.worker,
                waiting = stream.waiting.max_capacity(),
                "worker stream closed: the worker does not read; restart it if it does not reconnect"
            );
            self.cut.inc();
            self.close();
        }
    }

    pub(super) fn close(&mut self) {
        self.stream = None;
    }

    /// Whether the stream still has a reader.
    pub(super) fn is_open(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| !stream.waiting.is_closed())
    }
}
