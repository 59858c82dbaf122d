//! The `Idempotency-Key` header: the same as the field of that name in a body.

use axum::extract::FromRequestParts;
use http::request::Parts;
use lockgate_core::request::FieldError;

use super::RouteResult;
use super::problem::Problem;

const HEADER: &str = "idempotency-key";

pub(super) struct IdempotencyKey(Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> RouteResult<Self> {
        let mut values = parts.headers.get_all(HEADER).iter();
        let Some(value) = values.next() else { return Ok(Self(None)) };
        match value.to_str() {
            Ok(text) if values.next().is_none() => Ok(Self(Some(text.to_owned()))),
            Ok(_) => Err(wrong("is sent twice")),
            Err(_) => Err(wrong("must be plain text")),
        }
    }
}

impl IdempotencyKey {
    /// A body may name the same key; another one would make it unclear which counts.
    pub(super) fn put_into(self, field: &mut Option<String>) -> RouteResult<()> {
        match (self.0, field) {
            (None, _) => Ok(()),
            (Some(header), Some(field)) if header == *field => Ok(()),
            (Some(_), Some(_)) => Err(wrong("differs from idempotency_key in the body; send one of them")),
            (Some(header), field) => {
                *field = Some(header);
                Ok(())
            }
        }
    }
}

fn wrong(what: &str) -> Problem {
    vec![FieldError::new("Idempotency-Key", what)].into()
}
