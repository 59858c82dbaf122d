//! Errors as problem documents (RFC 9457), with a code that programs can rely on.

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use lockgate_api::view::FieldProblem;
use lockgate_core::request::FieldError;
use lockgate_engine::ApiError;
use serde::Serialize;
use utoipa::ToSchema;

use crate::errors::mapping;

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Problem {
    /// A URI that names the kind of problem.
    #[serde(rename = "type")]
    kind: String,
    /// The kind of problem in words.
    title: &'static str,
    status: u16,
    /// What went wrong this time.
    detail: String,
    /// Stable name for programs.
    code: &'static str,
    /// Every field that was refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldProblem>,
    #[serde(skip)]
    retry_after_s: Option<u16>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: &'static str, detail: impl std::fmt::Display) -> Self {
        Self {
            kind: format!("urn:lockgate:problem:{code}"),
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: detail.to_string(),
            code,
            errors: Vec::new(),
            retry_after_s: None,
        }
    }

    /// When trying again makes sense, if it does.
    pub(super) fn after(self, wait: Option<Duration>) -> Self {
        // Rounded up: who comes back a moment too early is refused again.
        let seconds = wait.map(|wait| u16::try_from(wait.as_millis().div_ceil(1_000)).unwrap_or(u16::MAX));
        Self { retry_after_s: seconds, ..self }
    }
}

impl From<ApiError> for Problem {
    fn from(error: ApiError) -> Self {
        let mapping = mapping(&error);
        if matches!(error, ApiError::Internal(_)) {
            tracing::error!(%error, "internal error in a call");
        }
        let mut problem = Self::new(mapping.http, error.code(), &error);
        problem.title = mapping.title;
        problem = problem.after(mapping.retry_after);
        if let ApiError::Invalid(fields) = error {
            problem.errors = fields.into_iter().map(FieldProblem::from).collect();
        }
        problem
    }
}

impl From<Vec<FieldError>> for Problem {
    fn from(errors: Vec<FieldError>) -> Self {
        ApiError::Invalid(errors).into()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after_s {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_store_says_when_to_come_back() {
        let response = Problem::from(ApiError::Exhausted("the store is full".into())).into_response();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()[RETRY_AFTER], "10");
    }
}
