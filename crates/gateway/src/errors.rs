//! The one table from errors to what HTTP and gRPC clients see.

use std::collections::HashMap;
use std::time::Duration;

use http::StatusCode;
use lockgate_engine::ApiError;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::auth::AuthRefusal;

/// How one kind of error looks from outside.
pub(crate) struct Mapping {
    pub(crate) http: StatusCode,
    pub(crate) grpc: Code,
    pub(crate) title: &'static str,
    /// When trying again makes sense, if it does.
    pub(crate) retry_after: Option<Duration>,
}

/// Room must be made by an operator, or by retention: asking again at once is useless.
const ROOM_IN: Duration = Duration::from_secs(10);
const BACK_IN: Duration = Duration::from_secs(1);

/// Whose the reason codes in `google.rpc.ErrorInfo` are.
const DOMAIN: &str = "lockgate";

/// A status travels in HTTP/2 trailers, and clients take 16 KiB of them by default: the text, which may be written as
/// three bytes for one, and the details beside it. REST, where a body has room, tells everything.
const DETAIL_BYTES_MAX: usize = 2 * 1024;

pub(crate) fn mapping(error: &ApiError) -> Mapping {
    let mapping = |http, grpc, title, retry_after| Mapping { http, grpc, title, retry_after };
    match error {
        ApiError::Invalid(_) => mapping(StatusCode::BAD_REQUEST, Code::InvalidArgument, "The request is not valid", None),
        ApiError::NotFound(_) | ApiError::NoSuch { .. } => mapping(StatusCode::NOT_FOUND, Code::NotFound, "Not found", None),
        ApiError::KeyTaken { .. } => {
            mapping(StatusCode::CONFLICT, Code::AlreadyExists, "Already used for something else", None)
        }
        ApiError::State(_) | ApiError::RunState(_) => {
            mapping(StatusCode::CONFLICT, Code::FailedPrecondition, "Not possible in this state", None)
        }
        ApiError::Forbidden(_) => mapping(StatusCode::FORBIDDEN, Code::PermissionDenied, "Not allowed", None),
        ApiError::Outdated(_) => mapping(StatusCode::CONFLICT, Code::Aborted, "Changed by somebody else meanwhile", None),
        ApiError::NotConfigured(_) => {
            mapping(StatusCode::CONFLICT, Code::FailedPrecondition, "This server is not configured for it", None)
        }
        ApiError::Exhausted(_) => {
            mapping(StatusCode::TOO_MANY_REQUESTS, Code::ResourceExhausted, "No room for more", Some(ROOM_IN))
        }
        ApiError::Limited(limited) => mapping(
            StatusCode::TOO_MANY_REQUESTS,
            Code::ResourceExhausted,
            "No room for more at the moment",
            Some(limited.retry_after),
        ),
        ApiError::Unavailable(_) => {
            mapping(StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable, "Unavailable for a moment", Some(BACK_IN))
        }
        // Not an error of the 5xx kind, which clients try again.
        ApiError::Damaged { .. } => {
            mapping(StatusCode::UNPROCESSABLE_ENTITY, Code::DataLoss, "The stored row is damaged", None)
        }
        ApiError::Internal(_) => mapping(StatusCode::INTERNAL_SERVER_ERROR, Code::Internal, "Internal error", None),
    }
}

/// When trying again makes sense, for items of a batch.
pub(crate) fn retry_after_ms(error: &ApiError) -> Option<u64> {
    mapping(error).retry_after.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}

/// The error as a gRPC status with `google.rpc` details.
pub(crate) fn status(error: &ApiError) -> Status {
    let mapping = mapping(error);
    let mut details = ErrorDetails::new();
    details.set_error_info(error.code(), DOMAIN, HashMap::new());
    if let Some((what, name)) = absent(error) {
        details.set_resource_info(what, clipped(name), "", "");
    }
    if let ApiError::Invalid(fields) = error {
        let mut room = DETAIL_BYTES_MAX;
        for field in fields {
            let bytes = field.field.len() + field.message.len();
            let Some(left) = room.checked_sub(bytes) else { break };
            room = left;
            details.add_bad_request_violation(&field.field, &field.message);
        }
    }
    if mapping.retry_after.is_some() {
        details.set_retry_info(mapping.retry_after);
    }
    if matches!(error, ApiError::Internal(_)) {
        tracing::error!(%error, "internal error in a call");
    }
    Status::with_error_details(mapping.grpc, clipped(error.to_string()), details)
}

/// What kind of thing is not there, and what it was called.
fn absent(error: &ApiError) -> Option<(&'static str, String)> {
    match error {
        ApiError::NotFound(id) => Some(("job", id.to_string())),
        ApiError::NoSuch { what, name, .. } => Some((*what, name.clone())),
        _ => None,
    }
}

/// The mapping of a failed authentication.
pub(crate) fn refused(refusal: &AuthRefusal) -> Status {
    let code = match refusal {
        AuthRefusal::Missing | AuthRefusal::Bad | AuthRefusal::Token(_) => Code::Unauthenticated,
        AuthRefusal::Slow(_) => Code::ResourceExhausted,
        AuthRefusal::Forbidden(_) => Code::PermissionDenied,
        AuthRefusal::Unavailable(_) => Code::Unavailable,
        AuthRefusal::NoSuchMethod { .. } | AuthRefusal::NoSuchPath => Code::Unimplemented,
    };
    told(code, refusal.code(), refusal.text(), refusal.retry_after())
}

/// A status with its stable code, and when to come back.
pub(crate) fn told(grpc: Code, code: &str, text: impl Into<String>, retry_after: Option<Duration>) -> Status {
    let mut details = ErrorDetails::new();
    details.set_error_info(code, DOMAIN, HashMap::new());
    if retry_after.is_some() {
        details.set_retry_info(retry_after);
    }
    Status::with_error_details(grpc, text, details)
}

fn clipped(mut text: String) -> String {
    if text.len() > DETAIL_BYTES_MAX {
        text.truncate(text.floor_char_boundary(DETAIL_BYTES_MAX));
        text.push_str(" …");
    }
    text
}

#[cfg(test)]
mod tests {
    use lockgate_core::ids::JobId;
    use lockgate_core::job::{Illegal, JobState};
    use lockgate_ports::StoreError;

    use super::*;

    #[test]
    fn every_error_has_its_place_on_both_doors() {
        let table = [
            (ApiError::invalid("topic", "is bad"), 400, Code::InvalidArgument, "invalid_argument"),
            (ApiError::NotFound(JobId::from("a")), 404, Code::NotFound, "not_found"),
            (ApiError::KeyTaken { what: "the key", first: "a".into() }, 409, Code::AlreadyExists, "idempotency_conflict"),
            (ApiError::State(Illegal::Terminal(JobState::Failed)), 409, Code::FailedPrecondition, "already_ended"),
            (ApiError::State(Illegal::SelfApproval), 409, Code::FailedPrecondition, "self_approval"),
            (ApiError::State(Illegal::PayloadHidden), 409, Code::FailedPrecondition, "payload_hidden"),
            (ApiError::Forbidden("not yours".into()), 403, Code::PermissionDenied, "permission_denied"),
            (ApiError::Outdated("version 2 is in force".into()), 409, Code::Aborted, "outdated"),
            (ApiError::NotConfigured("start it with --auth".into()), 409, Code::FailedPrecondition, "not_configured"),
            (ApiError::from(StoreError::Full("disk".into())), 429, Code::ResourceExhausted, "exhausted"),
            (ApiError::from(StoreError::Unavailable("away".into())), 503, Code::Unavailable, "unavailable"),
            (ApiError::Damaged { row: "job a".into(), why: "bits".into() }, 422, Code::DataLoss, "row_damaged"),
            (ApiError::from(StoreError::Corrupt("bits".into())), 500, Code::Internal, "internal"),
            (ApiError::from(StoreError::Refused("a trigger".into())), 500, Code::Internal, "internal"),
        ];
        for (error, http, grpc, reason) in table {
            assert_eq!(mapping(&error).http, http, "{error}");
            let status = status(&error);
            assert_eq!((status.code(), status.message()), (grpc, error.to_string().as_str()));
            let details = status.get_error_details();
            assert_eq!(details.error_info().map(|info| info.reason.as_str()), Some(reason));
            let retryable = matches!(grpc, Code::ResourceExhausted | Code::Unavailable);
            assert_eq!(details.retry_info().is_some(), retryable, "{error}");
        }
    }

    #[test]
    fn what_is_not_there_is_named_by_its_kind() {
        let of = |error: &ApiError| status(error).get_error_details().resource_info().map(|info| info.resource_type.clone());
        assert_eq!(of(&ApiError::NotFound(JobId::from("a"))).as_deref(), Some("job"));
        let pool = ApiError::NoSuch { what: "pool", name: "ecco".into(), more: String::new() };
        assert_eq!(of(&pool).as_deref(), Some("pool"));
        assert_eq!(of(&ApiError::invalid("topic", "is bad")), None);
    }

    #[test]
    fn more_errors_than_trailers_hold_are_cut_short() {
        let field = |n: usize| lockgate_core::request::FieldError::new("policy", format!("line {n}: {}", "ä".repeat(100)));
        let error = ApiError::Invalid((0..100).map(field).collect());
        let status = status(&error);
        assert!(status.message().len() < DETAIL_BYTES_MAX + 10, "{}", status.message().len());
        let shown = status.get_error_details().bad_request().map_or(0, |bad| bad.field_violations.len());
        assert!((1..100).contains(&shown), "{shown}");
        let mut trailers = http::HeaderMap::new();
        status.add_header(&mut trailers).expect("a status fits into headers");
        let bytes: usize = trailers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum();
        assert!(bytes < 16 * 1024, "{bytes}");
    }
}
