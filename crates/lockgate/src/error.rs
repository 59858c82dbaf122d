//! Errors of the command line: what went wrong, the exit code for scripts, and what to do next.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

use lockgate_engine::ApiError;
use serde::Serialize;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::output;

/// The exit codes, as the help documents them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Success = 0,
    /// Wrong usage, or the server refused or failed.
    Error = 1,
    /// The job that was waited for ended in any other state than SUCCEEDED.
    JobEndedBadly = 2,
    Unreachable = 3,
    NotFound = 4,
    Conflict = 5,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The text at the end of the help.
pub(crate) const EXIT_CODES_HELP: &str = "Exit codes:
  0  done; with --wait, the job succeeded
  1  wrong usage, or the server refused or failed
  2  the job that was waited for did not succeed
  3  the server cannot be reached
  4  there is no such job, or nothing of what was asked for
  5  conflict: the job is not in a state that allows this, the key has another job,
     what is in force is something else, the audit trail is broken, doctor or health found something bad,
     or chaos broke a promise";

#[derive(Debug)]
pub(crate) enum CliError {
    /// An error on the command line, in a file or on this machine.
    Usage(String),
    Unreachable {
        server: String,
        cause: String,
    },
    NotFound {
        /// The kind of object: `job`, `pool`, or empty if the server did not say.
        what: String,
        message: String,
    },
    Conflict(String),
    /// The object changed since it was read.
    Outdated(String),
    /// The server refused the request as invalid.
    Refused {
        message: String,
        fields: Vec<String>,
    },
    /// The server does not allow this client to do it.
    Unwelcome(String),
    /// The server cannot do it now; a retry may succeed.
    Busy {
        message: String,
        /// When to retry, if the server said so.
        again_in: Option<Duration>,
    },
    Server(String),
    /// The reader of the output closed its end, such as `head`. Not an error to report.
    OutputClosed,
}

impl CliError {
    pub(crate) fn not_found(what: &str, message: String) -> Self {
        Self::NotFound { what: what.to_owned(), message }
    }

    pub(crate) const fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) | Self::Refused { .. } | Self::Unwelcome(_) | Self::Busy { .. } | Self::Server(_) => Exit::Error,
            Self::Unreachable { .. } => Exit::Unreachable,
            Self::NotFound { .. } => Exit::NotFound,
            Self::Conflict(_) | Self::Outdated(_) => Exit::Conflict,
            Self::OutputClosed => Exit::Success,
        }
    }

    /// A stable error code for programs.
    const fn code(&self) -> &'static str {
        match self {
            Self::Usage(_) => "usage",
            Self::Unreachable { .. } => "unreachable",
            Self::NotFound { .. } => "not_found",
            Self::Conflict(_) => "conflict",
            Self::Outdated(_) => "outdated",
            Self::Refused { .. } => "refused",
            Self::Unwelcome(_) => "unwelcome",
            Self::Busy { .. } => "busy",
            Self::Server(_) => "server_error",
            Self::OutputClosed => "output_closed",
        }
    }

    /// Advice on what to do next, if there is any.
    pub(crate) fn hint(&self) -> Option<Cow<'static, str>> {
        let hint = match self {
            Self::Unreachable { .. } => {
                "is the server running? start it with `lockgate serve`, or name another with --server"
            }
            Self::NotFound { what, .. } => where_to_look(what)?,
            Self::Conflict(_) => "look at it as it is now: `lockgate get <job>`, or `lockgate dag get <run>`",
            Self::Outdated(_) => {
                "look again: `lockgate policy|pools|timeouts show` and `lockgate pools list` say what is in force now"
            }
            Self::Unwelcome(_) => {
                "show a credential with --api-key or LOCKGATE_API_KEY; `lockgate auth whoami` tells who it makes you"
            }
            Self::Busy { again_in: Some(span), .. } => return Some(try_again_in(*span).into()),
            Self::Busy { again_in: None, .. } => "try again in a moment",
            Self::Server(_) => "the server's log says more",
            Self::Usage(_) | Self::Refused { .. } | Self::OutputClosed => return None,
        };
        Some(hint.into())
    }

    /// The error as JSON, for programs.
    pub(crate) fn json(&self) -> String {
        #[derive(Serialize)]
        struct ErrorView<'a> {
            code: &'a str,
            message: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            hint: Option<Cow<'static, str>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            retry_after_ms: Option<u64>,
        }
        let retry_after_ms = match self {
            Self::Busy { again_in: Some(span), .. } => u64::try_from(span.as_millis()).ok(),
            _ => None,
        };
        let view = ErrorView { code: self.code(), message: self.to_string(), hint: self.hint(), retry_after_ms };
        serde_json::to_string(&view).unwrap_or_default()
    }

    pub(crate) fn from_status(status: &Status, server: &str) -> Self {
        let message = status.message().to_owned();
        match status.code() {
            _ if came_from_transport(status) => Self::Unreachable { server: server.to_owned(), cause: innermost(status) },
            Code::NotFound => {
                let info = status.get_details_resource_info();
                Self::NotFound { what: info.map(|info| info.resource_type).unwrap_or_default(), message }
            }
            Code::AlreadyExists | Code::FailedPrecondition => Self::Conflict(message),
            Code::Aborted => Self::Outdated(message),
            Code::InvalidArgument | Code::OutOfRange => Self::Refused { message, fields: violations(status) },
            Code::PermissionDenied | Code::Unauthenticated => Self::Unwelcome(message),
            Code::Unimplemented => Self::Refused { message, fields: Vec::new() },
            Code::ResourceExhausted | Code::Unavailable | Code::DeadlineExceeded => {
                Self::Busy { message, again_in: status.get_details_retry_info().and_then(|info| info.retry_delay) }
            }
            Code::Ok | Code::Cancelled | Code::Unknown | Code::Internal | Code::DataLoss => {
                Self::Server(if message.is_empty() { status.code().description().to_owned() } else { message })
            }
        }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { server, cause } => write!(f, "cannot reach {server}: {cause}"),
            Self::Refused { message, fields } => {
                f.write_str(message)?;
                fields.iter().filter(|field| !message.contains(*field)).try_for_each(|field| write!(f, "\n  {field}"))
            }
            Self::Usage(message)
            | Self::NotFound { message, .. }
            | Self::Conflict(message)
            | Self::Outdated(message)
            | Self::Unwelcome(message)
            | Self::Busy { message, .. }
            | Self::Server(message) => f.write_str(message),
            Self::OutputClosed => f.write_str("the output was closed"),
        }
    }
}

impl Error for CliError {}

/// Errors of an engine in this process.
impl From<ApiError> for CliError {
    fn from(error: ApiError) -> Self {
        Self::Server(error.to_string())
    }
}

impl From<std::io::Error> for CliError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Usage(error.to_string()),
        }
    }
}

/// The command that lists objects of a kind.
fn where_to_look(what: &str) -> Option<&'static str> {
    Some(match what {
        "job" => "`lockgate jobs` lists the jobs of this tenant; --tenant names another tenant",
        "dead letter" => "`lockgate dlq list` lists the dead letters of this tenant; --tenant names another tenant",
        "approval" => "`lockgate approvals list` lists what waits for an approval; --tenant names another tenant",
        "DAG" => "`lockgate dag list` lists the workflows of this tenant; --tenant names another tenant",
        "version of the DAG" => "`lockgate dag list` lists the latest versions; `lockgate dag show NAME` shows one",
        "run" => "`lockgate dag runs` and `lockgate saga list` list the runs of this tenant; --tenant names another tenant",
        "workflow" => "`lockgate saga list` lists the workflows of plain jobs; --tenant names another tenant",
        "schedule" => "`lockgate schedule list` lists the schedules of this tenant; --tenant names another tenant",
        "backfill" => "`lockgate schedule show NAME` shows the backfills that are under way",
        "credential" => "`lockgate auth key list` and `lockgate auth certificate list` list the credentials",
        "pool" => "`lockgate pools list` lists the pools",
        "worker" => "`lockgate workers` lists the workers",
        "policy snapshot" => "`lockgate policy list` lists what is or was in force",
        "pools snapshot" => "`lockgate pools history` lists what is or was in force",
        "timeouts snapshot" => "`lockgate timeouts history` lists what is or was in force",
        "quotas snapshot" => "`lockgate quotas history` lists what is or was in force",
        _ => return None,
    })
}

/// Rounded up to whole seconds, so that a retry is not too early.
fn try_again_in(span: Duration) -> String {
    let seconds = span.as_secs() + u64::from(span.subsec_nanos() > 0);
    format!("try again in {}", output::span(Duration::from_secs(seconds)))
}

/// Whether the connection failed, and not the call.
fn came_from_transport(status: &Status) -> bool {
    status.source().is_some()
}

/// The last error of the chain, which has the system's own message without the layers in between.
pub(crate) fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

fn violations(status: &Status) -> Vec<String> {
    let bad_request = status.get_details_bad_request().map(|details| details.field_violations).unwrap_or_default();
    bad_request.into_iter().map(|violation| format!("{}: {}", violation.field, violation.description)).collect()
}

#[cfg(test)]
mod tests {
    use tonic_types::ErrorDetails;

    use super::*;

    fn exit_of(code: Code) -> Exit {
        CliError::from_status(&Status::new(code, "x"), "http://s").exit()
    }

    #[test]
    fn each_status_has_the_exit_code_of_the_help() {
        let error =
            [Code::InvalidArgument, Code::ResourceExhausted, Code::Internal, Code::PermissionDenied, Code::Unavailable];
        assert!(error.into_iter().all(|code| exit_of(code) == Exit::Error));
        assert_eq!(exit_of(Code::NotFound), Exit::NotFound);
        for code in [Code::AlreadyExists, Code::FailedPrecondition, Code::Aborted] {
            assert_eq!(exit_of(code), Exit::Conflict);
        }
    }

    #[test]
    fn a_failed_connection_is_told_apart_from_a_server_that_says_unavailable() {
        let io = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "connection refused");
        let mut status = Status::unavailable("tcp connect error");
        status.set_source(std::sync::Arc::new(io));
        let error = CliError::from_status(&status, "http://s");
        assert_eq!(error.exit(), Exit::Unreachable);
        assert_eq!(error.to_string(), "cannot reach http://s: connection refused");
        assert!(error.hint().is_some_and(|hint| hint.contains("lockgate serve")));
        assert_eq!(exit_of(Code::Unavailable), Exit::Error);
    }

    #[test]
    fn a_server_without_room_says_when_to_come_back() {
        let told = |retry_after| {
            let mut details = ErrorDetails::new();
            details.set_retry_info(Some(retry_after));
            let status = Status::with_error_details(Code::ResourceExhausted, "no room", details);
            CliError::from_status(&status, "http://s")
        };
        let hint = |error: &CliError| error.hint().map(Cow::into_owned).unwrap_or_default();
        assert_eq!(hint(&told(Duration::from_secs(600))), "try again in 10m");
        assert_eq!(hint(&told(Duration::from_millis(1_200))), "try again in 2s");
        assert!(told(Duration::from_millis(1_200)).json().ends_with(r#""retry_after_ms":1200}"#));
        assert_eq!(hint(&CliError::from_status(&Status::unavailable("later"), "http://s")), "try again in a moment");
    }

    #[test]
    fn refused_fields_are_listed() {
        let mut details = ErrorDetails::new();
        details.add_bad_request_violation("topic", "must not be empty");
        let status = Status::with_error_details(Code::InvalidArgument, "the job is not valid", details);
        let error = CliError::from_status(&status, "http://s");
        assert_eq!(error.to_string(), "the job is not valid\n  topic: must not be empty");
    }

    #[test]
    fn the_hint_names_the_command_that_lists_what_was_looked_for() {
        for (what, command) in [("job", "lockgate jobs"), ("schedule", "schedule list"), ("pool", "pools list")] {
            let mut details = ErrorDetails::new();
            details.set_resource_info(what, "x", "", "");
            let error = CliError::from_status(&Status::with_error_details(Code::NotFound, "none", details), "http://s");
            assert!(error.hint().is_some_and(|hint| hint.contains(command)), "{error:?}");
        }
        assert_eq!(CliError::from_status(&Status::not_found("none"), "http://s").hint(), None, "a server that says less");
    }

    #[test]
    fn programs_get_a_code_with_the_message() {
        let json = CliError::not_found("job", "no job a".to_owned()).json();
        assert!(json.starts_with(r#"{"code":"not_found","message":"no job a","hint":"#), "{json}");
    }

    #[test]
    fn a_closed_pipe_is_not_an_error() {
        let pipe = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        assert_eq!(CliError::from(pipe).exit(), Exit::Success);
    }
}
