//! An attempt that Python runs.

use std::collections::HashMap;

use lockgate_client::NewJob;
use lockgate_worker::{Act, Child, ChildOutcome, Context, JobError, Payload};
use parking_lot::Mutex;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::call::{PyCall, call, call_blocking};
use crate::fault::Fault;
use crate::outcome::AttemptEnding;

pub(crate) type PythonResult = Result<Box<RawValue>, JobError>;

/// An attempt and how it may be ended: once, by `succeed` or `fail`.
#[pyclass(name = "Attempt", module = "lockgate._native", frozen)]
pub(crate) struct PyAttempt {
    /// Tells this attempt from others in calls between Rust and Python.
    #[pyo3(get)]
    number: u64,
    /// Index of its topic among those that the worker was started with.
    #[pyo3(get)]
    route: usize,
    context: Context,
    payload: Payload,
    settle: Mutex<Option<oneshot::Sender<PythonResult>>>,
}

/// What a handler asks of the server beside the attempt.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct AttemptArgs {
    children: Vec<ChildArgs>,
    kind: String,
    value: String,
    detail: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChildArgs {
    key: String,
    job: NewJob,
}

#[derive(Serialize)]
struct AttemptInfo<'a> {
    tenant: &'a str,
    trace_id: &'a str,
    traceparent: Option<String>,
    labels: &'a HashMap<String, String>,
    env: &'a HashMap<String, String>,
    may_use_network: bool,
    may_exec: bool,
    gathered_rounds: u32,
    gathered_partly: bool,
}

#[derive(Serialize)]
struct ChildAnswer<'a> {
    key: &'a str,
    job_id: &'a str,
    state: &'a str,
    reason: Option<&'a str>,
    message: Option<&'a str>,
    result: Option<&'a RawValue>,
}

impl PyAttempt {
    pub(crate) fn new(
        number: u64,
        route: usize,
        context: Context,
        payload: Payload,
        settle: oneshot::Sender<PythonResult>,
    ) -> Self {
        Self { number, route, context, payload, settle: Mutex::new(Some(settle)) }
    }

    fn settle(&self, outcome: PythonResult) -> bool {
        // The receiver is gone when the attempt was cut off.
        self.settle.lock().take().is_some_and(|settle| settle.send(outcome).is_ok())
    }
}

#[pymethods]
impl PyAttempt {
    #[getter]
    fn job_id(&self) -> &str {
        self.context.job_id()
    }

    #[getter]
    fn topic(&self) -> &str {
        self.context.topic()
    }

    /// Number of the attempt, from 1.
    #[getter]
    fn attempt(&self) -> u32 {
        self.context.attempt()
    }

    /// The payload as JSON text.
    #[getter]
    fn payload(&self) -> PyResult<&str> {
        std::str::from_utf8(self.payload.bytes()).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// What else a handler may want to know, as JSON.
    fn info(&self) -> PyResult<String> {
        let gathered = self.context.gathered();
        let info = AttemptInfo {
            tenant: self.context.tenant(),
            trace_id: self.context.trace_id(),
            traceparent: self.context.traceparent(),
            labels: self.context.labels(),
            env: self.context.env(),
            may_use_network: self.context.may_use_network(),
            may_exec: self.context.may_exec(),
            gathered_rounds: gathered.map_or(0, |gathered| gathered.rounds),
            gathered_partly: gathered.is_some_and(|gathered| gathered.partial),
        };
        serde_json::to_string(&info).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    #[getter]
    fn is_cancelled(&self) -> bool {
        self.context.is_cancelled()
    }

    fn progress(&self, percent: u32, message: String) {
        self.context.progress(percent, message);
    }

    fn log(&self, line: String) {
        self.context.log(line);
    }

    /// Ends the attempt with a result in JSON. False if it no longer counts.
    fn succeed(&self, result: String) -> bool {
        let result = RawValue::from_string(result);
        self.settle(result.map_err(|error| JobError::fatal(format_args!("the handler's result is not valid JSON: {error}"))))
    }

    /// Ends the attempt without a result. False if it no longer counts.
    fn fail(&self, ending: &str) -> PyResult<bool> {
        let ending: AttemptEnding =
            serde_json::from_str(ending).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(self.settle(Err(ending.into())))
    }

    /// Asks the server beside the attempt, and calls `done(answer, error)`.
    fn call(&self, operation: String, args: &str, done: Py<PyAny>) -> PyResult<PyCall> {
        let (context, args) = (self.context.clone(), serde_json::from_str(args).map_err(Fault::from));
        call(done, async move { perform(&context, &operation, args?).await.map(Some) })
    }

    fn call_blocking(&self, py: Python<'_>, operation: String, args: &str) -> PyResult<(Option<String>, Option<String>)> {
        let (context, args) = (self.context.clone(), serde_json::from_str(args).map_err(Fault::from));
        call_blocking(py, async move { perform(&context, &operation, args?).await.map(Some) })
    }
}

async fn perform(context: &Context, operation: &str, args: AttemptArgs) -> Result<String, Fault> {
    match operation {
        "check" => {
            let act = match args.kind.as_str() {
                "tool" => Act::Tool(&args.value),
                "url" => Act::Url(&args.value),
                "command" => Act::Command(&args.value),
                other => return Err(Fault::internal(format!("no action of kind {other}"))),
            };
            context.check(act, &args.detail).await?;
            Ok("null".to_owned())
        }
        "children" => {
            let children = context.children().await?;
            let answers = children.iter().map(child_answer).collect::<Result<Vec<_>, _>>()?;
            Ok(serde_json::to_string(&answers)?)
        }
        "submit_children" => {
            let children = args.children.into_iter().map(child).collect::<Result<Vec<_>, _>>()?;
            Ok(serde_json::to_string(&context.submit_children(children).await?)?)
        }
        _ => Err(Fault::internal(format!("no operation {operation}"))),
    }
}

fn child(args: ChildArgs) -> Result<Child, Fault> {
    let message = args.job.into_message()?;
    Ok(Child::new(args.key, message.topic.clone()).with(|job| *job = message))
}

fn child_answer(child: &ChildOutcome) -> Result<ChildAnswer<'_>, Fault> {
    let failure = child.failure.as_ref();
    Ok(ChildAnswer {
        key: &child.key,
        job_id: &child.job_id,
        state: child.state,
        reason: failure.map(|(reason, _)| reason.as_str()),
        message: failure.map(|(_, message)| message.as_str()),
        result: if child.succeeded() { Some(serde_json::from_slice(child.result_json())?) } else { None },
    })
}
