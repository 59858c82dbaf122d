//! How an attempt ended, as a worker says it.

use std::time::Duration;

use lockgate_core::ids::check_name;
use lockgate_core::job::{OnTimeout, Outcome};
use lockgate_core::limits::{PAYLOAD_BYTES_MAX, SPAN_MS_MAX};
use lockgate_core::request::Json;

use lockgate_proto::v1::result::{AwaitChildren, Outcome as Wire, Succeeded};

/// Takes an outcome off the wire. One that makes no sense is the handler's failure, not the platform's: the same handler
/// would answer the same again, so the job fails for good and says why.
pub fn outcome(wire: Option<Wire>) -> Outcome {
    match wire {
        None => fatal("the worker reported a result without an outcome"),
        Some(Wire::Succeeded(Succeeded { result_json })) => succeeded(&result_json),
        Some(Wire::FailedRetryable(failed)) => {
            // A code that is no name is in no list of codes.
            let code = Some(failed.code).filter(|code| check_name(code).is_ok()).map(Into::into);
            Outcome::FailedRetryable { error: failed.error.into(), code, retry_after: failed.retry_after_ms.map(span) }
        }
        Some(Wire::FailedFatal(failed)) => Outcome::FailedFatal { error: failed.error.into() },
        Some(Wire::TimedOut(_)) => Outcome::TimedOut,
        Some(Wire::Cancelled(cancelled)) => Outcome::Cancelled { note: cancelled.note.into() },
        Some(Wire::Snooze(snooze)) => Outcome::Snooze { delay: span(snooze.delay_ms) },
        Some(Wire::Interrupted(_)) => Outcome::Interrupted,
        Some(Wire::Revoked(_)) => Outcome::Revoked,
        Some(Wire::AwaitChildren(wait)) => awaiting(&wait),
    }
}

fn succeeded(json: &[u8]) -> Outcome {
    if json.is_empty() {
        return Outcome::Succeeded { result: Json::null() };
    }
    if json.len() > PAYLOAD_BYTES_MAX {
        return too_long(json.len());
    }
    let text = match std::str::from_utf8(json) {
        Ok(text) => text,
        Err(error) => return fatal(&format!("the result is not UTF-8: {error}")),
    };
    match Json::parse(text) {
        // Written in canonical form, a number may need more room.
        Ok(result) if result.as_str().len() > PAYLOAD_BYTES_MAX => too_long(result.as_str().len()),
        Ok(result) => Outcome::Succeeded { result },
        Err(error) => fatal(&format!("the result cannot be kept: {}", error.in_field("result"))),
    }
}

fn awaiting(wait: &AwaitChildren) -> Outcome {
    let on_timeout = if wait.on_timeout.is_empty() { Ok(OnTimeout::default()) } else { wait.on_timeout.parse() };
    match on_timeout {
        Ok(on_timeout) => Outcome::AwaitChildren { timeout: wait.timeout_ms.map(span), on_timeout },
        Err(error) => fatal(&format!("on_timeout of a wait for children {error}")),
    }
}

fn too_long(bytes: usize) -> Outcome {
    fatal(&format!("the result has {bytes} bytes; at most {PAYLOAD_BYTES_MAX} are kept"))
}

fn fatal(error: &str) -> Outcome {
    Outcome::FailedFatal { error: error.into() }
}

/// Bounded like every span a client may ask for, so that arithmetic on it never overflows.
fn span(ms: u64) -> Duration {
    Duration::from_millis(ms.min(SPAN_MS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockgate_proto::v1::result::{Interrupted, Revoked};

    fn error_of(json: Vec<u8>) -> String {
        match outcome(Some(Wire::Succeeded(Succeeded { result_json: json.into() }))) {
            Outcome::FailedFatal { error } => error.to_string(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_result_that_cannot_be_kept_fails_the_job_for_good() {
        assert!(error_of(b"{".to_vec()).contains("result: must be JSON: EOF"));
        assert!(error_of(br#"{"a":[{"b":1,"b":2}]}"#.to_vec()).contains("result.a[0].b: is given twice"));
        assert!(error_of(b"[9007199254740992]".to_vec()).contains("result[0]: is a whole number beyond"));
        assert!(error_of(format!("[{}1]", "1e5,".repeat(200_000)).into()).contains("1800003 bytes"));
        assert!(error_of(vec![b'"', 0xff, b'"']).contains("not UTF-8"));
        assert!(error_of(vec![b' '; PAYLOAD_BYTES_MAX + 1]).contains("1048577 bytes"));
        assert!(matches!(outcome(None), Outcome::FailedFatal { .. }));
    }

    #[test]
    fn what_was_called_back_is_not_what_was_interrupted() {
        assert_eq!(outcome(Some(Wire::Revoked(Revoked {}))), Outcome::Revoked);
        assert_eq!(outcome(Some(Wire::Interrupted(Interrupted {}))), Outcome::Interrupted);
    }

    #[test]
    fn a_wait_for_children_names_what_follows_it() {
        let wait = |on_timeout: &str| {
            outcome(Some(Wire::AwaitChildren(AwaitChildren { timeout_ms: Some(5), on_timeout: on_timeout.into() })))
        };
        let timeout = Some(Duration::from_millis(5));
        assert_eq!(wait("review"), Outcome::AwaitChildren { timeout, on_timeout: OnTimeout::Review });
        assert_eq!(wait(""), Outcome::AwaitChildren { timeout, on_timeout: OnTimeout::Fail });
        assert!(matches!(wait("shrug"), Outcome::FailedFatal { error } if error.contains("must be fail or review")));
    }

    #[test]
    fn no_result_is_null() {
        let none = Wire::Succeeded(Succeeded { result_json: Vec::new().into() });
        assert_eq!(outcome(Some(none)), Outcome::Succeeded { result: Json::null() });
    }
}
