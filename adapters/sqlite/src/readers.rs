//! The reading threads, each with its own connection.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use lockgate_ports::StoreError;
use parking_lot::Mutex;
use rusqlite::{Connection, Transaction};
use tokio::sync::oneshot;

use crate::connection;
use crate::error::{OpenError, StatementError};

/// How many reads run at once. A long one (a list, a count over all lanes) must not delay the refill of a lane.
const THREADS: usize = 3;

type ReadTask = Box<dyn FnOnce(&mut Connection) + Send>;

/// A handle to the reading threads.
pub(crate) struct Readers {
    reads: Option<Sender<ReadTask>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub(crate) fn start(database: &Path) -> Result<Self, OpenError> {
        let (reads, queue) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let mut readers = Self { reads: Some(reads), threads: Vec::with_capacity(THREADS) };
        for n in 0..THREADS {
            let conn = connection::reading(database)?;
            let queue = Arc::clone(&queue);
            let thread = std::thread::Builder::new().name(format!("sqlite-reader-{n}"));
            readers.threads.push(thread.spawn(move || serve(conn, &queue)).map_err(OpenError::Thread)?);
        }
        Ok(readers)
    }

    /// Runs `read` in one read transaction, so it sees one state of the database, with everything committed before the call.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Transaction<'_>) -> Result<T, StatementError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let gone = || StoreError::Unavailable("the reading threads have ended".to_owned());
        let (reply, answer) = oneshot::channel();
        let task: ReadTask = Box::new(move |conn| {
            // The send fails if the caller has gone, which is not an error.
            let _ = reply.send(in_one_state(conn, read).map_err(|fault| fault.before_commit()));
        });
        self.reads.as_ref().ok_or_else(gone)?.send(task).map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.reads = None;
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a reading thread panicked");
            }
        }
    }
}

fn in_one_state<T>(
    conn: &mut Connection,
    read: impl FnOnce(&Transaction<'_>) -> Result<T, StatementError>,
) -> Result<T, StatementError> {
    let transaction = conn.transaction()?;
    read(&transaction)
}

fn serve(mut conn: Connection, queue: &Mutex<Receiver<ReadTask>>) {
    loop {
        // The lock is held while waiting: one thread waits for work, and the others wait for the lock.
        let next = queue.lock().recv();
        match next {
            Ok(read) => read(&mut conn),
            Err(_) => return,
        }
    }
}
