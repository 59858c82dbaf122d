//! What both doors ask the engine.

use std::str::FromStr;

use lockgate_api::body::AnswerBody;
use lockgate_core::hex;
use lockgate_core::ids::JobId;
use lockgate_core::job::{Answer, DeadLetter, Reason};
use lockgate_core::request::{Caller, FieldError, RequestHash};
use lockgate_engine::{ApiError, ApprovalAnswer, Engine, ScheduleView};
use lockgate_ports::{Cursor, DeadLetterQuery, Listing};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};

/// Entries of a page when the client names no number.
pub(crate) const PAGE_DEFAULT: u32 = 50;

/// Cursors are opaque to clients; inside they are a position in commit order.
pub(crate) fn cursor_text(cursor: Cursor) -> String {
    format!("{:x}", cursor.0)
}

pub(crate) fn cursor(text: &str) -> Result<Option<Cursor>, FieldError> {
    if text.is_empty() {
        return Ok(None);
    }
    // Signs, capitals and zeros in front would be read too, and are in no cursor that was ever returned.
    let position = i64::from_str_radix(text, 16).ok().map(Cursor).filter(|cursor| cursor_text(*cursor) == text);
    position.map(Some).ok_or_else(|| FieldError::new("cursor", "must be one that a list returned"))
}

/// Where a list of schedules goes on; empty at its end.
pub(crate) fn next_name(views: &[ScheduleView], limit: usize) -> String {
    views.last().filter(|_| views.len() == limit).map(|last| last.schedule.name.to_string()).unwrap_or_default()
}

pub(crate) fn reason(text: &str) -> Result<Reason, FieldError> {
    let deserializer: StrDeserializer<'_, Error> = text.into_deserializer();
    match Reason::deserialize(deserializer) {
        // A newer version may have written another, but a question for it is far likelier to be misspelt.
        Err(_) | Ok(Reason::Unknown(_)) => {
            let known: Vec<&str> = Reason::ALL.iter().map(Reason::as_str).collect();
            Err(FieldError::new("reason", format_args!("must be one of {}", known.join(", "))))
        }
        Ok(known) => Ok(known),
    }
}

/// Dead letters that are open, or those that were discarded.
pub(crate) async fn dead_letters(
    engine: &Engine,
    caller: &Caller,
    query: DeadLetterQuery,
    discarded: bool,
) -> Result<Listing<DeadLetter>, ApiError> {
    match discarded {
        true => engine.discarded_letters(caller, query).await,
        false => engine.dead_letters(caller, query).await,
    }
}

/// A hash as people and programs copy it from a job.
fn request_hash(text: &str) -> Result<RequestHash, FieldError> {
    let wrong = || FieldError::new("request_hash", "must be the 64 hexadecimal digits that the job shows");
    hex::read(text).map(RequestHash).ok_or_else(wrong)
}

/// An answer of a person to the question policy asked.
pub(crate) fn answer(body: AnswerBody, job_id: JobId, answer: Answer) -> Result<ApprovalAnswer, Vec<FieldError>> {
    let AnswerBody { request_hash, rule_hash, note, acknowledge_hidden } = body;
    let request_hash = self::request_hash(&request_hash).map_err(|error| vec![error])?;
    let (rule_hash, note) = (rule_hash.into(), note.map(Into::into));
    Ok(ApprovalAnswer { job_id, answer, note, request_hash, rule_hash, acknowledge_hidden })
}

/// Parses a named text, or says which field was wrong.
pub(crate) fn parsed<T>(field: &str, text: &str) -> Result<T, FieldError>
where
    T: FromStr,
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error| FieldError::new(field, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_come_back_as_they_went() {
        assert_eq!(cursor(&cursor_text(Cursor(123_456))), Ok(Some(Cursor(123_456))));
        assert_eq!(cursor(""), Ok(None));
        for wrong in ["next please", "+1", "-1", "0a", "A", "8000000000000000"] {
            assert!(cursor(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn hashes_come_back_as_they_were_shown() {
        let hash = RequestHash(std::array::from_fn(|n| u8::try_from(n * 8).expect("below 256")));
        assert_eq!(request_hash(&hash.to_string()), Ok(hash));
        for wrong in ["", "00", &"+1".repeat(32), &"é".repeat(32), &"0".repeat(65)] {
            assert!(request_hash(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn reasons_are_the_stable_codes() {
        assert_eq!(reason(Reason::AgentLost.as_str()), Ok(Reason::AgentLost));
        let error = reason("tired").expect_err("unknown");
        assert!(error.message.contains("agent_lost"), "{error}");
    }
}
