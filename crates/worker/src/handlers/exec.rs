//! `job.exec`: runs a command. Off unless the worker allows it.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::descriptors::lacking;
use super::exec_process::{Captured, ExecProcess};
use crate::context::Context;
use crate::error::JobError;
use crate::payload::Payload;

/// The worker's own environment may hold its secrets, so a command starts with this instead.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The end of stderr that goes into the error text.
const ERROR_TAIL_BYTES: usize = 2 << 10;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecInput {
    /// The program and its arguments; no shell in between.
    command: Vec<String>,
    #[serde(default)]
    stdin: String,
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Ends the command earlier than the attempt's own timeout.
    timeout_ms: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct ExecOutput {
    exit_code: i32,
    stdout: String,
    truncated: bool,
}

pub(super) async fn run(context: &Context, payload: &Payload) -> Result<ExecOutput, JobError> {
    let input: ExecInput = payload.json()?;
    let Some((program, arguments)) = input.command.split_first() else {
        return Err(JobError::fatal("bad payload: field `command`: must name a program"));
    };
    let env = environment(context, input.env)?;
    let process = ExecProcess::start(program, arguments, &env).map_err(|error| not_started(context, program, &error))?;
    let finished = process.finish(input.stdin, |line| context.log(line));
    let captured = match input.timeout_ms {
        Some(ms) => timeout(Duration::from_millis(ms), finished)
            .await
            .map_err(|_| JobError::retryable(format_args!("the command did not end within {ms} ms and was killed")))?,
        None => finished.await,
    };
    judge(captured.map_err(|error| not_finished(context, error))?)
}

/// A missing program stays missing, so the failure is fatal; a machine without room may have room again, so that is retried.
fn not_started(context: &Context, program: &str, error: &io::Error) -> JobError {
    if let Some(lack) = lacking(error) {
        context.log(format!("cannot start {program}: {}", lack.0));
        return lack.put_off();
    }
    let text = format!("cannot start {program}: {error}");
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput => JobError::fatal(text),
        _ => JobError::retryable(text),
    }
}

/// Without a descriptor to watch it, the command was killed before its outcome was known.
fn not_finished(context: &Context, error: io::Error) -> JobError {
    match lacking(&error) {
        Some(lack) => {
            context.log(format!("the command could not be watched and was killed: {}", lack.0));
            lack.put_off()
        }
        None => error.into(),
    }
}

fn environment(context: &Context, own: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, JobError> {
    let mut env = BTreeMap::from([
        ("PATH".to_owned(), PATH.to_owned()),
        ("LOCKGATE_JOB_ID".to_owned(), context.job_id().to_owned()),
        ("LOCKGATE_ATTEMPT".to_owned(), context.attempt().to_string()),
    ]);
    env.extend(context.traceparent().map(|trace| ("TRACEPARENT".to_owned(), trace)));
    env.extend(context.env().iter().map(|(key, value)| (key.clone(), value.clone())));
    env.extend(own);
    // The operating system cannot express such names, and the standard library would only report "invalid".
    match env.keys().find(|key| key.is_empty() || key.contains(['=', '\0'])) {
        Some(key) => Err(JobError::fatal(format_args!("bad payload: field `env`: {key:?} is no name of a variable"))),
        None => Ok(env),
    }
}

fn judge(captured: Captured) -> Result<ExecOutput, JobError> {
    match captured.status.code() {
        Some(0) => Ok(ExecOutput { exit_code: 0, stdout: captured.stdout, truncated: captured.truncated }),
        _ => {
            let from = captured.stderr.len().saturating_sub(ERROR_TAIL_BYTES);
            let tail = &captured.stderr[captured.stderr.ceil_char_boundary(from)..];
            Err(JobError::retryable(format_args!("the command ended with {}: {}", captured.status, tail.trim_end())))
        }
    }
}
