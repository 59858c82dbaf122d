//! `job.flaky`: fails a few times, then succeeds.

use serde::{Deserialize, Serialize};

use crate::error::JobError;
use crate::payload::Payload;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FlakyInput {
    fail: u32,
}

/// The attempt that succeeded.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct FlakyOutput {
    attempt: u32,
}

/// Attempts up to `fail` fail. The number also grows with losses and replays: the promise is that attempt `fail` + 1 succeeds.
pub(super) async fn run(attempt: u32, payload: Payload) -> Result<FlakyOutput, JobError> {
    let fail = match payload.json::<u32>() {
        Ok(number) => number,
        Err(_) => payload.json::<FlakyInput>()?.fail,
    };
    if attempt <= fail {
        return Err(JobError::retryable(format_args!("attempt {attempt} of {fail} that fail")));
    }
    Ok(FlakyOutput { attempt })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn flaky(attempt: u32, json: &'static str) -> Result<FlakyOutput, JobError> {
        run(attempt, Payload::new(json.as_bytes().into())).await
    }

    #[tokio::test]
    async fn the_first_attempts_fail() {
        for json in [r#"{"fail":2}"#, "2"] {
            assert!(flaky(1, json).await.is_err());
            assert!(flaky(2, json).await.is_err());
            assert_eq!(flaky(3, json).await, Ok(FlakyOutput { attempt: 3 }));
        }
        assert!(flaky(1, r#"{"times":2}"#).await.unwrap_err().to_string().contains("unknown field `times`"));
    }
}
