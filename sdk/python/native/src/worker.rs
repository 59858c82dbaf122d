//! A worker whose handlers are in Python.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lockgate_worker::{Context, JobError, Payload, Worker};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyList;
use serde_json::value::RawValue;
use tokio::sync::{oneshot, watch};

use crate::attempt::PyAttempt;
use crate::callbacks::CallbackThread;
use crate::fault::Fault;
use crate::runtime::{Running, running};
use crate::settings::WorkerSettings;

/// A worker. It does nothing until it is started.
#[pyclass(name = "Worker", module = "lockgate._native", frozen)]
pub(crate) struct PyWorker {
    settings: Result<WorkerSettings, String>,
    drain: watch::Sender<bool>,
}

#[pymethods]
impl PyWorker {
    #[new]
    fn new(settings: &str) -> Self {
        let settings = serde_json::from_str(settings).map_err(|error| error.to_string());
        Self { settings, drain: watch::channel(false).0 }
    }

    /// Serves the topics. Calls `dispatch(attempts)` with those to run, `stop(number)` with one that no longer counts, and once
    /// `ended(error)`, with none after a drain.
    fn start(&self, topics: Vec<String>, dispatch: Py<PyAny>, stop: Py<PyAny>, ended: Py<PyAny>) -> PyResult<()> {
        let (worker, Running { handle, callbacks }) = match self.prepared() {
            Ok(prepared) => prepared,
            Err(fault) => return Python::attach(|py| ended.call1(py, (fault.text(),)).map(drop)),
        };
        let outlet = Arc::new(Outlet {
            callbacks: callbacks.clone(),
            waiting: Mutex::new(Vec::new()),
            dispatch: Arc::new(dispatch),
            stop: Arc::new(stop),
            last_number: AtomicU64::new(0),
        });
        let mut worker = worker;
        for (route, topic) in topics.into_iter().enumerate() {
            let outlet = outlet.clone();
            worker = worker.handle(topic, move |context, payload| run(outlet.clone(), route, context, payload));
        }
        let worker = match &self.settings {
            Ok(settings) => settings.lease_losses(worker),
            Err(_) => worker,
        };
        let mut draining = self.drain.subscribe();
        handle.spawn(async move {
            // In a task of its own, so that a panic is told of.
            let worked = tokio::spawn(async move {
                let told = async move {
                    // A sender that is gone says it too.
                    let _ = draining.wait_for(|drain| *drain).await;
                };
                worker.run_until(told).await
            });
            let fault = match worked.await {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(Fault::from(error).text()),
                Err(error) => Some(Fault::internal(error.to_string()).text()),
            };
            callbacks.post(move |py| ended.call1(py, (fault,)).map(drop));
        });
        Ok(())
    }

    /// Takes no more jobs, and ends when those that run have ended or the drain timeout is over.
    fn drain(&self) {
        self.drain.send_replace(true);
    }
}

impl PyWorker {
    fn prepared(&self) -> Result<(Worker, Running), Fault> {
        let running = running()?;
        let settings = self.settings.as_ref();
        let settings = settings.map_err(|error| Fault::new("setup", error, "correct the argument that is named"))?;
        Ok((settings.worker(), running))
    }
}

/// Hands attempts to Python. Those that come while Python is busy go together.
struct Outlet {
    callbacks: CallbackThread,
    waiting: Mutex<Vec<PyAttempt>>,
    dispatch: Arc<Py<PyAny>>,
    stop: Arc<Py<PyAny>>,
    last_number: AtomicU64,
}

impl Outlet {
    fn dispatch(self: &Arc<Self>, attempt: PyAttempt) {
        let is_first = {
            let mut waiting = self.waiting.lock();
            waiting.push(attempt);
            waiting.len() == 1
        };
        if is_first {
            let outlet = self.clone();
            self.callbacks.post(move |py| {
                let attempts = std::mem::take(&mut *outlet.waiting.lock());
                outlet.dispatch.call1(py, (PyList::new(py, attempts)?,)).map(drop)
            });
        }
    }

    fn stop(&self, number: u64) {
        let stop = self.stop.clone();
        self.callbacks.post(move |py| stop.call1(py, (number,)).map(drop));
    }
}

async fn run(outlet: Arc<Outlet>, route: usize, context: Context, payload: Payload) -> Result<Box<RawValue>, JobError> {
    let (settle, mut settled) = oneshot::channel();
    let number = outlet.last_number.fetch_add(1, Ordering::Relaxed);
    let mut cut_off = CutOff { outlet: outlet.clone(), number, ended: false };
    outlet.dispatch(PyAttempt::new(number, route, context.clone(), payload, settle));
    let outcome = tokio::select! {
        biased;
        outcome = &mut settled => outcome,
        () = context.cancelled() => {
            outlet.stop(number);
            settled.await
        }
    };
    cut_off.ended = true;
    outcome.unwrap_or_else(|_| Err(JobError::retryable("the program of the worker dropped the attempt without an outcome")))
}

/// Tells Python when the worker gives up an attempt whose handler still runs: its time is over, or it was told to stop and did not.
struct CutOff {
    outlet: Arc<Outlet>,
    number: u64,
    ended: bool,
}

impl Drop for CutOff {
    fn drop(&mut self) {
        if !self.ended {
            self.outlet.stop(self.number);
        }
    }
}
