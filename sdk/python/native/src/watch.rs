//! Following a job: Python asks for one update after the other, so a slow reader slows the stream.

use std::sync::Arc;

use lockgate_client::JobUpdates;
use parking_lot::Mutex as SyncMutex;
use pyo3::prelude::*;
use tokio::sync::Mutex;

use crate::call::{CallAnswer, PyCall, call, call_blocking};
use crate::fault::Fault;
use crate::owned::Owned;

type SharedUpdates = Owned<Arc<Mutex<JobUpdates>>>;

/// The updates of a job, or why they cannot be had: told by the first call for one.
#[pyclass(name = "Watch", module = "lockgate._native", frozen)]
pub(crate) struct PyWatch(SyncMutex<Result<SharedUpdates, Option<Fault>>>);

impl PyWatch {
    pub(crate) fn new(updates: Result<JobUpdates, Fault>) -> Self {
        Self(SyncMutex::new(updates.map(|updates| Owned::new(Arc::new(Mutex::new(updates)))).map_err(Some)))
    }

    fn next_update(&self) -> impl Future<Output = CallAnswer> + Send + use<> {
        let updates = match &mut *self.0.lock() {
            Ok(updates) => updates.get().cloned().ok_or_else(|| Fault::internal("a watch without updates")),
            Err(fault) => Err(fault.take().unwrap_or_else(|| Fault::internal("the watch was refused before"))),
        };
        async move {
            let update = updates?.lock().await.next().await?;
            update.map(|update| serde_json::to_string(&update).map_err(Fault::from)).transpose()
        }
    }
}

#[pymethods]
impl PyWatch {
    /// Calls `done(update, error)`; both are none when the job has ended.
    fn next(&self, done: Py<PyAny>) -> PyResult<PyCall> {
        call(done, self.next_update())
    }

    fn next_blocking(&self, py: Python<'_>) -> PyResult<(Option<String>, Option<String>)> {
        call_blocking(py, self.next_update())
    }
}
