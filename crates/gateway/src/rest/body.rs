//! Request bodies: JSON or, for configuration, YAML; bounded, and refused with the place where they are wrong.

use std::error::Error;

use axum::BoxError;
use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use lockgate_core::request::FieldError;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::RouteResult;
use super::problem::Problem;
use crate::REQUEST_BYTES_MAX;
use crate::calls::SentLate;

/// A body that must be there.
pub(super) struct Sent<T>(pub(super) T);

/// A body that may be left out.
pub(super) struct Maybe<T>(pub(super) T);

/// Nothing can be said in this body; what is sent anyway is refused like any unknown field.
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoBody {}

/// A text with a form of its own, or a JSON object around it.
pub(super) enum YamlOrJson<T> {
    Yaml(String),
    Json(T),
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Sent<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> RouteResult<Self> {
        check_type(request.headers())?;
        let bytes = read(request).await?;
        if bytes.is_empty() {
            return Err(Problem::new(StatusCode::BAD_REQUEST, "invalid_json", "a JSON body is missing"));
        }
        parse(&bytes).map(Self)
    }
}

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for Maybe<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> RouteResult<Self> {
        let headers = request.headers().clone();
        let bytes = read(request).await?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        check_type(&headers)?;
        parse(&bytes).map(Self)
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for YamlOrJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> RouteResult<Self> {
        let given = essence(request.headers()).to_ascii_lowercase();
        let is_yaml = YAML_TYPES.contains(&given.as_str());
        if !is_yaml && given != JSON_TYPE {
            return Err(wrong_type("application/yaml, text/yaml or application/json", &given));
        }
        let bytes = read(request).await?;
        if is_yaml { text(&bytes).map(|text| Self::Yaml(text.to_owned())) } else { parse(&bytes).map(Self::Json) }
    }
}

const JSON_TYPE: &str = "application/json";
const YAML_TYPES: [&str; 2] = ["application/yaml", "text/yaml"];

fn check_type(headers: &HeaderMap) -> RouteResult<()> {
    let essence = essence(headers);
    if essence.eq_ignore_ascii_case(JSON_TYPE) { Ok(()) } else { Err(wrong_type(JSON_TYPE, essence)) }
}

fn essence(headers: &HeaderMap) -> &str {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    given.split(';').next().unwrap_or_default().trim()
}

fn wrong_type(wanted: &str, given: &str) -> Problem {
    let detail = format!("the content type must be {wanted}, not {given:?}");
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
}

/// A body in another coding would be taken for a broken one.
fn check_coding(headers: &HeaderMap) -> RouteResult<()> {
    let plain = |coding: &str| coding.trim().is_empty() || coding.trim().eq_ignore_ascii_case("identity");
    let said = headers.get_all(CONTENT_ENCODING).iter().map(|value| value.to_str().unwrap_or("?"));
    match said.flat_map(|codings| codings.split(',')).find(|coding| !plain(coding)) {
        None => Ok(()),
        Some(coding) => {
            let detail = format!("the content coding {:?} is not read; send the body as it is", coding.trim());
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_content_coding", detail))
        }
    }
}

async fn read(request: Request) -> RouteResult<Bytes> {
    check_coding(request.headers())?;
    let announced = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|bytes| bytes > REQUEST_BYTES_MAX) {
        return Err(too_large());
    }
    let body: Body = request.into_body();
    to_bytes(body, REQUEST_BYTES_MAX).await.map_err(|error| {
        if is_from::<http_body_util::LengthLimitError>(&error) {
            return too_large();
        }
        if is_from::<SentLate>(&error) {
            return Problem::new(StatusCode::REQUEST_TIMEOUT, SentLate::CODE, SentLate);
        }
        Problem::new(StatusCode::BAD_REQUEST, "broken_body", format_args!("the body could not be read: {error}"))
    })
}

/// What reads a body is told when it comes too slowly.
pub(crate) fn sent_late() -> BoxError {
    Box::new(SentLate)
}

/// Whether this is at the bottom of an error.
fn is_from<E: Error + 'static>(error: &(dyn Error + 'static)) -> bool {
    error.is::<E>() || error.source().is_some_and(is_from::<E>)
}

fn too_large() -> Problem {
    let detail = format!("the body must have at most {REQUEST_BYTES_MAX} bytes");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", detail)
}

fn text(bytes: &[u8]) -> RouteResult<&str> {
    std::str::from_utf8(bytes).map_err(|error| {
        let detail = format!("the body is not UTF-8: invalid at byte {}", error.valid_up_to());
        Problem::new(StatusCode::BAD_REQUEST, "invalid_utf8", detail)
    })
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> RouteResult<T> {
    let text = text(bytes)?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| wrong(&error, text))?;
    deserializer.end().map_err(|error| not_json(&error))?;
    if is_object(text) { Ok(value) } else { Err(vec![no_object()].into()) }
}

/// Reads a part of a body that was taken whole: whatever is wrong with it is wrong with this part only.
pub(super) fn part<T: DeserializeOwned>(json: &RawValue) -> Result<T, FieldError> {
    let mut deserializer = serde_json::Deserializer::from_str(json.get());
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| misread(&error, json.get()))?;
    if is_object(json.get()) { Ok(value) } else { Err(no_object()) }
}

type BodyError = serde_path_to_error::Error<serde_json::Error>;

fn wrong(error: &BodyError, text: &str) -> Problem {
    if error.inner().is_data() { vec![misread(error, text)].into() } else { not_json(error.inner()) }
}

/// A list would do for serde, if it had as many entries as the object has fields.
fn is_object(text: &str) -> bool {
    text.trim_ascii_start().starts_with('{')
}

fn no_object() -> FieldError {
    FieldError::new(WHOLE, "must be a JSON object")
}

/// What the whole is called where a field has a name.
const WHOLE: &str = "body";

/// The field that is wrong or missing, in words that know nothing of the types behind it.
fn misread(error: &BodyError, text: &str) -> FieldError {
    if !is_object(text) {
        return no_object();
    }
    let (path, mut message) = (error.path().to_string(), error.inner().to_string());
    if let Some((before, after)) = message.split_once("expected struct ") {
        let place = after.find(" at line ").map_or("", |at| &after[at..]);
        message = format!("{before}expected an object{place}");
    }
    let missing = message.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
    let field = match (path.as_str(), missing) {
        (".", Some(field)) => field.to_owned(),
        (".", None) => WHOLE.to_owned(),
        (path, Some(field)) => format!("{path}.{field}"),
        (path, None) => path.to_owned(),
    };
    FieldError::new(field, message)
}

fn not_json(error: &serde_json::Error) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "invalid_json", format_args!("the body is not valid JSON: {error}"))
}
