//! From gRPC answers to the JSON of the REST contract.

use super::{Json, Time};

pub(super) fn time(ms: i64) -> Option<Time> {
    Some(Time::from_millis(ms))
}

/// proto3 has no absent text; an empty one means absent.
pub(super) fn present(text: String) -> Option<String> {
    if text.is_empty() { None } else { Some(text) }
}

pub(super) fn document(bytes: &[u8]) -> Option<Json> {
    serde_json::from_slice(bytes).ok()
}
