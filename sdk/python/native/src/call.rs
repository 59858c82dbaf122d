//! Runs a future for Python: the caller waits for it, or is called back.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use futures_util::FutureExt;
use pyo3::prelude::*;
use tokio::task::AbortHandle;

use crate::fault::Fault;
use crate::runtime::{Running, running};

/// How long Ctrl-C may go unnoticed while the main thread waits.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// The answer of a call: JSON text, or none at the end of a stream.
pub(crate) type CallAnswer = Result<Option<String>, Fault>;

/// As Python gets it: the answer, or the error.
type AnswerPair = (Option<String>, Option<String>);

/// A call under way.
#[pyclass(name = "Call", module = "lockgate._native", frozen)]
pub(crate) struct PyCall(Option<AbortHandle>);

#[pymethods]
impl PyCall {
    /// Gives it up. Its callback may still be made if it has just ended.
    fn cancel(&self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

fn pair(answer: CallAnswer) -> AnswerPair {
    match answer {
        Ok(json) => (json, None),
        Err(fault) => (None, Some(fault.text())),
    }
}

/// Calls `done(answer, error)` when the future has ended.
pub(crate) fn call(done: Py<PyAny>, future: impl Future<Output = CallAnswer> + Send + 'static) -> PyResult<PyCall> {
    let Running { handle, callbacks } = match running() {
        Ok(running) => running,
        Err(fault) => {
            Python::attach(|py| done.call1(py, (None::<String>, fault.text())).map(drop))?;
            return Ok(PyCall(None));
        }
    };
    let task = handle.spawn(async move {
        let (answer, error) = pair(without_panic(future).await);
        callbacks.post(move |py| done.call1(py, (answer, error)).map(drop));
    });
    Ok(PyCall(Some(task.abort_handle())))
}

/// Waits for the future. Signal handlers of the program run meanwhile, and an exception of theirs ends the wait.
pub(crate) fn call_blocking(
    py: Python<'_>,
    future: impl Future<Output = CallAnswer> + Send + 'static,
) -> PyResult<AnswerPair> {
    let running = match running() {
        Ok(running) => running,
        Err(fault) => return Ok((None, Some(fault.text()))),
    };
    let (tell, mut told) = channel();
    let task = running.handle.spawn(async move {
        // The receiver is gone if the caller was interrupted.
        let _ = tell.send(pair(without_panic(future).await));
    });
    loop {
        let (answer, receiver) = py.detach(move || (told.recv_timeout(SIGNALS_EVERY), told));
        told = receiver;
        match answer {
            Ok(answer) => return Ok(answer),
            Err(RecvTimeoutError::Timeout) => py.check_signals().inspect_err(|_| task.abort())?,
            Err(RecvTimeoutError::Disconnected) => {
                return Ok(pair(Err(Fault::internal("the call was given up by its runtime"))));
            }
        }
    }
}

/// A panic becomes an error of the call; it must not end a thread of the program.
async fn without_panic(future: impl Future<Output = CallAnswer>) -> CallAnswer {
    AssertUnwindSafe(future).catch_unwind().await.unwrap_or_else(|panic| Err(Fault::internal(panic_text(&*panic))))
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("without a text"))
}
