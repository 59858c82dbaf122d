//! A server of its own for a test.

use lockgate_client::TestServer;
use parking_lot::Mutex;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde::Deserialize;

use crate::fault::Fault;
use crate::owned::Owned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TestServerSettings {
    binary: String,
    arguments: Vec<String>,
    policy: Option<String>,
}

/// A running server, or why it did not start.
#[pyclass(name = "TestServer", module = "lockgate._native", frozen)]
pub(crate) struct PyTestServer {
    #[pyo3(get)]
    url: String,
    #[pyo3(get)]
    data: String,
    #[pyo3(get)]
    error: Option<String>,
    server: Mutex<Option<Owned<TestServer>>>,
}

#[pymethods]
impl PyTestServer {
    /// Returns when the server answers, or with `error` set.
    #[new]
    fn new(py: Python<'_>, settings: &str) -> PyResult<Self> {
        let settings: TestServerSettings =
            serde_json::from_str(settings).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        let started = py.detach(|| {
            let builder = TestServer::builder().binary(settings.binary);
            let builder = settings.arguments.into_iter().fold(builder, |builder, argument| builder.argument(argument));
            settings.policy.into_iter().fold(builder, |builder, policy| builder.policy(policy)).start()
        });
        Ok(match started {
            Ok(server) => Self {
                url: server.url().to_owned(),
                data: server.data().display().to_string(),
                error: None,
                server: Mutex::new(Some(Owned::new(server))),
            },
            Err(error) => Self {
                url: String::new(),
                data: String::new(),
                error: Some(Fault::from(error).text()),
                server: Mutex::new(None),
            },
        })
    }

    /// Ends the server at once and removes its data.
    fn stop(&self, py: Python<'_>) {
        let server = self.server.lock().take();
        py.detach(|| drop(server));
    }
}
