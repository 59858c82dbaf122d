//! How a handler reports a failure, and why a worker could not run.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use lockgate_contract::limits::ERROR_BYTES_MAX;
use lockgate_proto::v1::result::Outcome;
use lockgate_proto::v1::result::{Cancelled, FailedFatal, FailedRetryable, Snooze};
use tonic::Code;

use crate::children::Wait;

/// The error of a handler. Any [`std::error::Error`] becomes a retryable one through `?`.
///
/// It does not implement `Error` itself, because the blanket conversion would then be impossible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobError(ErrorKind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum ErrorKind {
    Retryable { error: String, code: String, after: Option<Duration> },
    Fatal { error: String },
    Cancelled { note: String },
    Snooze { delay: Duration },
    AwaitChildren(Wait),
}

impl JobError {
    /// Another attempt may succeed; the retry policy decides when.
    pub fn retryable(error: impl fmt::Display) -> Self {
        Self(ErrorKind::Retryable { error: clipped(error), code: String::new(), after: None })
    }

    /// Another attempt may succeed, but not before `after` has passed.
    pub fn retry_after(error: impl fmt::Display, after: Duration) -> Self {
        Self(ErrorKind::Retryable { error: clipped(error), code: String::new(), after: Some(after) })
    }

    /// Adds an error code that retry policies can list: a job or its topic may say that failures with it are not retried. A
    /// fatal failure is never retried.
    #[must_use]
    pub fn with_code(mut self, name: impl Into<String>) -> Self {
        if let ErrorKind::Retryable { code, .. } = &mut self.0 {
            *code = name.into();
        }
        self
    }

    /// No attempt can succeed: the job becomes a dead letter now.
    pub fn fatal(error: impl fmt::Display) -> Self {
        Self(ErrorKind::Fatal { error: clipped(error) })
    }

    /// The handler found that the work is no longer wanted: the job ends as cancelled.
    pub fn cancelled(note: impl fmt::Display) -> Self {
        Self(ErrorKind::Cancelled { note: clipped(note) })
    }

    /// Runs the job again after `delay`. Costs no attempt.
    pub fn snooze(delay: Duration) -> Self {
        Self(ErrorKind::Snooze { delay })
    }

    /// Runs the job again once none of its children is under way. Costs no attempt, and holds no worker slot meanwhile.
    pub fn await_children(wait: Wait) -> Self {
        Self(ErrorKind::AwaitChildren(wait))
    }

    /// Whether it ends the job: no further attempt is made, whatever the job's retries are.
    pub const fn is_fatal(&self) -> bool {
        matches!(self.0, ErrorKind::Fatal { .. })
    }

    pub(crate) fn into_outcome(self) -> Outcome {
        match self.0 {
            ErrorKind::Retryable { error, code, after } => {
                Outcome::FailedRetryable(FailedRetryable { error, retry_after_ms: after.map(millis), code })
            }
            ErrorKind::Fatal { error } => Outcome::FailedFatal(FailedFatal { error }),
            ErrorKind::Cancelled { note } => Outcome::Cancelled(Cancelled { note }),
            ErrorKind::Snooze { delay } => Outcome::Snooze(Snooze { delay_ms: millis(delay) }),
            ErrorKind::AwaitChildren(wait) => Outcome::AwaitChildren(wait.into()),
        }
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ErrorKind::Retryable { error, .. } | ErrorKind::Fatal { error } => f.write_str(error),
            ErrorKind::Cancelled { note } => write!(f, "cancelled: {note}"),
            ErrorKind::Snooze { delay } => write!(f, "snoozed for {delay:?}"),
            ErrorKind::AwaitChildren(_) => f.write_str("waits for its children"),
        }
    }
}

impl<E: Error> From<E> for JobError {
    fn from(error: E) -> Self {
        Self::retryable(chain(&error))
    }
}

/// The error and its causes in one line, because only the text is sent. A cause that the text already contains is left out.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}

fn clipped(text: impl fmt::Display) -> String {
    let mut text = text.to_string();
    text.truncate(text.floor_char_boundary(ERROR_BYTES_MAX));
    text
}

pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Why [`Worker::run`](crate::Worker::run) ended without being told to.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The program must be changed: an invalid address, or a worker without handlers.
    #[error("the worker is not set up to run: {0}")]
    Setup(String),
    /// The server refuses this worker; a retry would not help.
    #[error("the server refuses this worker: {} ({:?}){}", .0.message(), .0.code(), advice(.0.code()))]
    Refused(Box<tonic::Status>),
    /// The result journal cannot be used: another worker uses it, or its folder does not exist.
    #[error("result journal {}: {source}", path.display())]
    Journal { path: PathBuf, source: io::Error },
    /// The operating system gave no randomness or no signal notifications.
    #[error("the system refuses a service the worker needs: {0}")]
    System(#[from] io::Error),
}

const fn advice(code: Code) -> &'static str {
    match code {
        Code::Unauthenticated => "; give it an API key or a token that is still good",
        Code::PermissionDenied => "; give it a credential with the role worker for its pool",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] io::Error);

    #[test]
    fn any_error_becomes_retryable_and_tells_its_causes() {
        let error = JobError::from(Outer(io::Error::other("disk gone")));
        assert_eq!(error, JobError::retryable("outer: disk gone"));
    }

    #[test]
    fn long_errors_are_cut_at_a_character() {
        let JobError(ErrorKind::Fatal { error }) = JobError::fatal("é".repeat(ERROR_BYTES_MAX)) else {
            panic!("fatal expected")
        };
        assert_eq!(error.len(), ERROR_BYTES_MAX);
    }
}
