//! Errors on their way to Python, where they become exceptions by their kind.

use lockgate_client::{ClientError, FieldFault, JobRecord, TestServerError};
use lockgate_worker::{JobError, WorkerError};
use serde::Serialize;

/// An error in the words of `lockgate.errors`.
#[derive(Debug, Serialize)]
pub(crate) struct Fault {
    kind: &'static str,
    code: String,
    message: String,
    next_step: Box<str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    fields: Box<[FieldFault]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<Box<JobRecord>>,
}

impl Fault {
    pub(crate) fn new(kind: &'static str, message: impl Into<String>, next_step: impl Into<Box<str>>) -> Self {
        Self {
            kind,
            code: kind.to_owned(),
            message: message.into(),
            next_step: next_step.into(),
            fields: Box::default(),
            retry_after_ms: None,
            job: None,
        }
    }

    /// A mistake of this package, not of its user.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new("internal", message, "this is a defect of lockgate; please report it with this text")
    }

    /// The JSON text for Python.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!(r#"{{"kind":"internal","message":"{error}"}}"#))
    }
}

impl From<ClientError> for Fault {
    fn from(error: ClientError) -> Self {
        let fault = Self { code: error.code().to_owned(), ..Self::new(error.kind(), error.to_string(), error.next_step()) };
        match error {
            ClientError::Invalid { fields, .. } => Self { fields: fields.into(), ..fault },
            ClientError::Busy { retry_after: Some(span), .. } => {
                Self { retry_after_ms: u64::try_from(span.as_millis()).ok(), ..fault }
            }
            ClientError::JobFailed(job) => Self { job: Some(job), ..fault },
            _ => fault,
        }
    }
}

/// What a handler asked of the server, and why it did not get it.
impl From<JobError> for Fault {
    fn from(error: JobError) -> Self {
        let kind = if error.is_fatal() { "fatal" } else { "retryable" };
        Self::new(kind, error.to_string(), "let the exception end the attempt, or catch it and go on without")
    }
}

impl From<WorkerError> for Fault {
    fn from(error: WorkerError) -> Self {
        let message = error.to_string();
        match error {
            WorkerError::Setup(_) => Self::new("setup", message, "correct what the worker is made with"),
            WorkerError::Refused(status) => {
                let code = format!("{:?}", status.code());
                let fault = match code.as_str() {
                    "Unauthenticated" | "PermissionDenied" => {
                        Self::new("not_allowed", message, "give the worker a credential with the role worker for its pool")
                    }
                    _ => Self::new("setup", message, "correct what the worker is made with, or the server's configuration"),
                };
                Self { code, ..fault }
            }
            WorkerError::Journal { .. } => {
                Self::new("setup", message, "give each worker a journal of its own, in a folder that exists")
            }
            WorkerError::System(_) => Self::new("setup", message, "raise the limits of this process"),
        }
    }
}

impl From<TestServerError> for Fault {
    fn from(error: TestServerError) -> Self {
        Self::new("setup", error.to_string(), "install the package `lockgate-server`, or name the binary with LOCKGATE_BIN")
    }
}

/// A request that the Python half of the package made wrongly, or that names what there is not.
impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        Self::new("setup", format!("the request is not understood: {error}"), "correct the argument that is named")
    }
}
