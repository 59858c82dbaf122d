//! A worker in the background, and signals between its handlers and the test.

use lockgate_worker::{Worker, WorkerError};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::edge::within;

pub(crate) struct Running {
    shutdown: oneshot::Sender<()>,
    task: JoinHandle<Result<(), WorkerError>>,
}

impl Running {
    pub(crate) fn start(worker: Worker) -> Self {
        let (shutdown, asked) = oneshot::channel();
        let until = async move {
            let _ = asked.await;
        };
        Self { shutdown, task: tokio::spawn(worker.run_until(until)) }
    }

    /// Asks the worker to leave; the handle tells when it has.
    pub(crate) fn ask_to_leave(self) -> JoinHandle<Result<(), WorkerError>> {
        let _ = self.shutdown.send(());
        self.task
    }

    /// The worker vanishes, as in a crash.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    /// Waits for a worker that ends by itself.
    pub(crate) async fn ended(self) -> Result<(), WorkerError> {
        let _shutdown = self.shutdown;
        within("the worker's end", self.task).await.unwrap()
    }
}
