//! A client, as Python holds it.

use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::call::{PyCall, call, call_blocking};
use crate::fault::Fault;
use crate::operations::{CallArgs, perform};
use crate::owned::Owned;
use crate::runtime::{check_fork, running};
use crate::settings::ClientSettings;
use crate::watch::PyWatch;
use lockgate_client::Client;

/// A client. It connects with its first call.
#[pyclass(name = "Connection", module = "lockgate._native", frozen)]
pub(crate) struct PyConnection {
    settings: Result<ClientSettings, String>,
    client: Mutex<Option<Owned<Client>>>,
}

impl PyConnection {
    fn client(&self) -> Result<Client, Fault> {
        let running = running()?;
        let settings =
            self.settings.as_ref().map_err(|error| Fault::new("setup", error, "correct the argument that is named"))?;
        let mut client = self.client.lock();
        if let Some(client) = client.as_ref().and_then(Owned::get) {
            return Ok(client.clone());
        }
        let _inside = running.handle.enter();
        let opened = settings.builder().open()?;
        *client = Some(Owned::new(opened.clone()));
        Ok(opened)
    }

    /// The call is prepared here, so that a mistake in it is told by the same way as any other.
    fn prepared(&self, args: &str) -> Result<(Client, CallArgs), Fault> {
        // Before the lock: in a fork it may never be released.
        check_fork()?;
        Ok((self.client()?, serde_json::from_str(args)?))
    }
}

#[pymethods]
impl PyConnection {
    #[new]
    fn new(settings: &str) -> Self {
        Self { settings: serde_json::from_str(settings).map_err(|error| error.to_string()), client: Mutex::new(None) }
    }

    /// Performs an operation and calls `done(answer, error)`, from a thread of its own.
    fn call(&self, operation: String, args: &str, done: Py<PyAny>) -> PyResult<PyCall> {
        let prepared = self.prepared(args);
        call(done, async move {
            let (client, args) = prepared?;
            perform(&client, &operation, args).await.map(Some)
        })
    }

    /// Performs an operation and waits for its answer: the answer and no error, or no answer and the error.
    fn call_blocking(&self, py: Python<'_>, operation: String, args: &str) -> PyResult<(Option<String>, Option<String>)> {
        let prepared = self.prepared(args);
        call_blocking(py, async move {
            let (client, args) = prepared?;
            perform(&client, &operation, args).await.map(Some)
        })
    }

    /// Follows a job from the event after this number.
    fn watch(&self, job_id: &str, after: u64) -> PyWatch {
        let updates = check_fork().and_then(|()| self.client()).map(|client| client.job(job_id).watch().after(after));
        PyWatch::new(updates)
    }
}
