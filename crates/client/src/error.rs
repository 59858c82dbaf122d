//! What can go wrong with a call, by what the caller can do about it.

use std::error::Error;
use std::fmt::{self, Write};
use std::time::Duration;

use serde::Serialize;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::record::JobRecord;

/// Why a call did not do what it was asked for. [`next_step`](Self::next_step) says what to do.
#[derive(Debug)]
pub enum ClientError {
    /// The program must be changed: no address, a credential that cannot be sent, a file that is missing.
    Setup(String),
    /// The server never answered.
    Unreachable { server: String, cause: String },
    /// The server did not answer in time. What was asked for may have been done.
    TimedOut { server: String, within: Duration },
    /// The request must be changed.
    Invalid { message: String, fields: Vec<FieldFault> },
    /// `what` is the kind of thing, such as `job`; empty if the server did not say.
    NotFound { what: String, message: String },
    /// Its state does not allow it, or the key or id stands for something else.
    Conflict { code: String, message: String },
    /// The credential is missing, no longer good, or not allowed to do this.
    NotAllowed { code: String, message: String },
    /// Not now. The server says when, if it knows.
    Busy { code: String, message: String, retry_after: Option<Duration> },
    /// The server failed.
    Server { code: String, message: String },
    /// The job that was waited for did not succeed.
    JobFailed(Box<JobRecord>),
    /// The result of the job is not what the caller took it for.
    Result { job_id: String, message: String },
}

/// What is wrong with one field of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldFault {
    pub field: String,
    pub message: String,
}

impl ClientError {
    pub(crate) fn invalid(field: &str, message: impl fmt::Display) -> Self {
        let fault = FieldFault { field: field.to_owned(), message: message.to_string() };
        Self::Invalid { message: format!("{field} {message}"), fields: vec![fault] }
    }

    /// Whether the same call may succeed later. Repeat a submit only if its job has an idempotency key or an id.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Busy { .. })
    }

    /// A stable word for programs: the server's own where it gave one.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Setup(_) => "setup",
            Self::Unreachable { .. } => "unreachable",
            Self::TimedOut { .. } => "call_timeout",
            Self::Invalid { .. } => "invalid_argument",
            Self::NotFound { .. } => "not_found",
            Self::Conflict { code, .. }
            | Self::NotAllowed { code, .. }
            | Self::Busy { code, .. }
            | Self::Server { code, .. } => code,
            Self::JobFailed(_) => "job_failed",
            Self::Result { .. } => "unexpected_result",
        }
    }

    /// The kind of error as a stable word, for libraries in other languages.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Setup(_) => "setup",
            Self::Unreachable { .. } => "unreachable",
            Self::TimedOut { .. } => "timed_out",
            Self::Invalid { .. } => "invalid",
            Self::NotFound { .. } => "not_found",
            Self::Conflict { .. } => "conflict",
            Self::NotAllowed { .. } => "not_allowed",
            Self::Busy { .. } => "busy",
            Self::Server { .. } => "server",
            Self::JobFailed(_) => "job_failed",
            Self::Result { .. } => "result",
        }
    }

    /// What to do next.
    #[must_use]
    pub fn next_step(&self) -> String {
        match self {
            Self::Setup(_) => "correct what the client is made with".to_owned(),
            Self::Unreachable { cause, .. } if cause.contains("certificate") => {
                "give the client the authority of the server's certificate, and an address that the certificate names"
                    .to_owned()
            }
            Self::Unreachable { .. } => {
                "start the server with `lockgate serve`, or give the client another address".to_owned()
            }
            Self::TimedOut { .. } => {
                "call again: with its idempotency key a submit is safe to repeat; `call_timeout` allows more time".to_owned()
            }
            Self::Invalid { .. } => "correct the fields that are named".to_owned(),
            Self::NotFound { what, .. } => where_to_look(what).to_owned(),
            Self::Conflict { .. } => "read it as it is now, and decide anew; another request needs another key".to_owned(),
            Self::NotAllowed { .. } => {
                "give the client a credential that may do this; `lockgate auth whoami` tells what one may do".to_owned()
            }
            Self::Busy { retry_after: Some(span), .. } => format!("try again in {span:?}"),
            Self::Busy { retry_after: None, .. } => "try again in a moment".to_owned(),
            Self::Server { .. } => "the server's log says more".to_owned(),
            Self::JobFailed(job) => {
                format!("`lockgate get {0}` shows its attempts; `lockgate dlq replay {0}` runs it again", job.job_id)
            }
            Self::Result { .. } => "read the result as another type".to_owned(),
        }
    }

    pub(crate) fn from_status(status: &Status, server: &str) -> Self {
        let message = match status.message() {
            "" => status.code().description().to_owned(),
            text => text.to_owned(),
        };
        let code = || status.get_details_error_info().map_or_else(|| word(status.code()), |info| info.reason);
        match status.code() {
            // A failed connection, not a failed call: the status was made here, from the error of the transport.
            _ if status.source().is_some() => Self::Unreachable { server: server.to_owned(), cause: innermost(status) },
            Code::InvalidArgument | Code::OutOfRange => Self::Invalid { message, fields: faults(status) },
            Code::NotFound => {
                let what = status.get_details_resource_info().map(|info| info.resource_type).unwrap_or_default();
                Self::NotFound { what, message }
            }
            Code::AlreadyExists | Code::FailedPrecondition | Code::Aborted => Self::Conflict { code: code(), message },
            Code::PermissionDenied | Code::Unauthenticated => Self::NotAllowed { code: code(), message },
            Code::ResourceExhausted | Code::Unavailable | Code::DeadlineExceeded => {
                let retry_after = status.get_details_retry_info().and_then(|info| info.retry_delay);
                Self::Busy { code: code(), message, retry_after }
            }
            _ => Self::Server { code: code(), message },
        }
    }

    /// A stream that was open and broke is the server going away, whatever the transport calls it.
    pub(crate) fn from_broken_stream(status: &Status, server: &str) -> Self {
        match status.code() {
            Code::Unknown | Code::Internal | Code::Cancelled | Code::Unavailable => {
                Self::Unreachable { server: server.to_owned(), cause: status.message().to_owned() }
            }
            _ => Self::from_status(status, server),
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { server, cause } => write!(f, "cannot reach {server}: {cause}"),
            Self::TimedOut { server, within } => write!(f, "no answer from {server} within {within:?}"),
            Self::Invalid { message, fields } => {
                f.write_str(message)?;
                for FieldFault { field, message: fault } in fields.iter().filter(|fault| !message.contains(&fault.message)) {
                    write!(f, "; {field}: {fault}")?;
                }
                Ok(())
            }
            Self::JobFailed(job) => {
                write!(f, "job {} ended as {}", job.job_id, job.state)?;
                let Some(failure) = &job.last_error else { return Ok(()) };
                write!(f, ": {}", failure.reason)?;
                if failure.message.is_empty() { Ok(()) } else { write!(f, ": {}", failure.message) }
            }
            Self::Result { job_id, message } => write!(f, "the result of job {job_id}: {message}"),
            Self::Setup(message)
            | Self::NotFound { message, .. }
            | Self::Conflict { message, .. }
            | Self::NotAllowed { message, .. }
            | Self::Busy { message, .. }
            | Self::Server { message, .. } => f.write_str(message),
        }
    }
}

impl Error for ClientError {}

fn faults(status: &Status) -> Vec<FieldFault> {
    let violations = status.get_details_bad_request().map(|details| details.field_violations).unwrap_or_default();
    violations.into_iter().map(|one| FieldFault { field: one.field, message: one.description }).collect()
}

/// The last error of the chain says what the system said, without the layers in between.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// gRPC's own name of a code, for servers that give no better one.
fn word(code: Code) -> String {
    let mut text = String::new();
    for c in format!("{code:?}").chars() {
        if c.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        // Writing into a text cannot fail.
        let _ = write!(text, "{}", c.to_lowercase());
    }
    text
}

fn where_to_look(what: &str) -> &'static str {
    match what {
        "job" => "look at the id and the tenant; `lockgate jobs` lists the jobs of a tenant",
        "dead letter" => "look at the id and the tenant; `lockgate dlq list` lists dead letters",
        "approval" => "look at the id and the tenant; `lockgate approvals list` lists what waits for an approval",
        "DAG" => "store the workflow with `lockgate dag apply`; `lockgate dag list` lists them",
        "run" => "look at the id and the tenant; `lockgate dag runs` lists the runs of a tenant",
        _ => "look at the name and the tenant",
    }
}

#[cfg(test)]
mod tests {
    use tonic_types::ErrorDetails;

    use super::*;

    fn of(code: Code, details: ErrorDetails) -> ClientError {
        ClientError::from_status(&Status::with_error_details(code, "no", details), "http://s")
    }

    #[test]
    fn each_status_becomes_what_the_caller_can_do_about_it() {
        let table = [
            (Code::InvalidArgument, "invalid", false),
            (Code::NotFound, "not_found", false),
            (Code::AlreadyExists, "conflict", false),
            (Code::FailedPrecondition, "conflict", false),
            (Code::Unauthenticated, "not_allowed", false),
            (Code::PermissionDenied, "not_allowed", false),
            (Code::ResourceExhausted, "busy", true),
            (Code::Unavailable, "busy", true),
            (Code::Internal, "server", false),
            (Code::Unimplemented, "server", false),
        ];
        for (code, kind, retryable) in table {
            let error = of(code, ErrorDetails::new());
            assert_eq!((error.kind(), error.is_retryable()), (kind, retryable), "{code:?}");
            assert!(!error.next_step().is_empty());
        }
        assert_eq!(of(Code::FailedPrecondition, ErrorDetails::new()).code(), "failed_precondition");
    }

    #[test]
    fn the_details_of_the_server_are_kept() {
        let mut details = ErrorDetails::new();
        details.set_error_info("quota_jobs", "lockgate", []).set_retry_info(Some(Duration::from_secs(3)));
        let error = of(Code::ResourceExhausted, details);
        assert_eq!((error.code(), error.next_step().as_str()), ("quota_jobs", "try again in 3s"));
        let mut details = ErrorDetails::new();
        details.add_bad_request_violation("topic", "must not be empty");
        assert_eq!(of(Code::InvalidArgument, details).to_string(), "no; topic: must not be empty");
    }

    #[test]
    fn a_failed_connection_is_told_apart_from_a_server_that_says_unavailable() {
        let io = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "connection refused");
        let mut status = Status::unavailable("tcp connect error");
        status.set_source(std::sync::Arc::new(io));
        let error = ClientError::from_status(&status, "http://s");
        assert_eq!(error.to_string(), "cannot reach http://s: connection refused");
        assert!(error.is_retryable() && error.next_step().contains("lockgate serve"));
        let cause = "invalid peer certificate: UnknownIssuer".to_owned();
        let error = ClientError::Unreachable { server: "https://s".to_owned(), cause };
        assert!(error.next_step().contains("authority"), "{}", error.next_step());
    }
}
