//! How an attempt ended, as Python's handlers say it.

use std::time::Duration;

use lockgate_worker::{JobError, Wait};
use serde::Deserialize;

/// Why a handler returned no result.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum AttemptEnding {
    Retryable { message: String, after_ms: Option<u64>, code: Option<String> },
    Fatal { message: String },
    Cancelled { message: String },
    Snooze { delay_ms: u64 },
    AwaitChildren { timeout_ms: Option<u64>, review: bool },
}

impl From<AttemptEnding> for JobError {
    fn from(ending: AttemptEnding) -> Self {
        match ending {
            AttemptEnding::Retryable { message, after_ms, code } => {
                let error = match after_ms {
                    Some(ms) => Self::retry_after(message, Duration::from_millis(ms)),
                    None => Self::retryable(message),
                };
                code.into_iter().fold(error, Self::with_code)
            }
            AttemptEnding::Fatal { message } => Self::fatal(message),
            AttemptEnding::Cancelled { message } => Self::cancelled(message),
            AttemptEnding::Snooze { delay_ms } => Self::snooze(Duration::from_millis(delay_ms)),
            AttemptEnding::AwaitChildren { timeout_ms, review } => {
                let wait = timeout_ms.map_or_else(Wait::default, |ms| Wait::up_to(Duration::from_millis(ms)));
                Self::await_children(if review { wait.or_review() } else { wait })
            }
        }
    }
}
