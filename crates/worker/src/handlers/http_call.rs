//! `job.http_call`: one HTTP request, judged by its status.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, RETRY_AFTER, TRANSFER_ENCODING, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::timeout;

use super::descriptors::{Lack, lacking};
use super::http_client::{HttpClient, check_literal, client, refused};
use crate::breaker::{Breakers, CircuitOpen, Permit};
use crate::error::{JobError, chain};
use crate::payload::Payload;

/// The most bytes of a response that are read.
const BODY_BYTES_MAX: usize = 1 << 20;
/// The most bytes of a response that are returned, as JSON text; the rest of a result's 1 MiB is for the other fields.
const BODY_JSON_BYTES_MAX: usize = BODY_BYTES_MAX - (64 << 10);
const TIMEOUT_MS_MAX: u64 = 600_000;
/// A longer `Retry-After` of the server is cut to this.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HttpCallInput {
    url: String,
    #[serde(default = "get")]
    method: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// A string is sent as it is, anything else as JSON.
    body: Option<Value>,
    #[serde(default = "ten_seconds")]
    timeout_ms: u64,
    /// The one status that counts as success; any 2xx without it.
    expect_status: Option<u16>,
}

fn get() -> String {
    "GET".to_owned()
}

fn ten_seconds() -> u64 {
    10_000
}

#[derive(Debug, Serialize)]
pub(super) struct HttpCallOutput {
    status: u16,
    content_type: Option<String>,
    /// Bytes that are not UTF-8 are replaced.
    body: String,
    truncated: bool,
}

/// Shared by all calls: connections, and the breaker of each host.
pub(super) struct HttpCaller {
    client: HttpClient,
    breakers: Breakers,
    allow_private: bool,
}

impl HttpCaller {
    pub(super) fn new(allow_private: bool, breakers: Breakers) -> Result<Self, rustls::Error> {
        Ok(Self { client: client(allow_private)?, breakers, allow_private })
    }

    /// Makes the call and reports its outcome to the host's breaker.
    async fn call(&self, request: Request<Full<Bytes>>, within: Duration) -> Result<HttpAnswer, JobError> {
        check_literal(request.uri(), self.allow_private).map_err(JobError::fatal)?;
        let host = host_of(request.uri());
        // The host was not called, so no attempt is spent: the job comes again when the breaker lets a call through.
        let permit = self.breakers.admit(&host).map_err(|open| {
            tracing::debug!(host, wait = ?open.wait, "circuit open: the call waits");
            JobError::from(open)
        })?;
        match timeout(within, self.exchange(request)).await {
            Ok(Ok((head, body))) => {
                let open = if head.status().is_server_error() { permit.failed() } else { answered(permit) };
                Ok(HttpAnswer { head, body, open })
            }
            // A lack of descriptors on this machine spends no attempt either.
            Ok(Err(Failed { lack: Some(lack), .. })) => Err(lack.put_off()),
            // A refused address says nothing about the host's health, so the permit is dropped unused.
            Ok(Err(Failed { refused: true, text, .. })) => Err(JobError::fatal(text)),
            Ok(Err(Failed { text, .. })) => Err(unwell(permit.failed(), JobError::retryable(text))),
            Err(_) => {
                let late = JobError::retryable(format_args!("{host} did not answer within {within:?}"));
                Err(unwell(permit.failed(), late))
            }
        }
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<(Response<()>, Body), Failed> {
        let (head, mut incoming) = self.client.request(request).await.map_err(|e| Failed::new(&e))?.into_parts();
        let mut body = Body::default();
        while let Some(frame) = incoming.frame().await {
            let Ok(data) = frame.map_err(|e| Failed::new(&e))?.into_data() else { continue };
            if !body.push(&data) {
                break;
            }
        }
        Ok((Response::from_parts(head, ()), body))
    }
}

struct HttpAnswer {
    head: Response<()>,
    body: Body,
    open: Option<CircuitOpen>,
}

fn answered(permit: Permit) -> Option<CircuitOpen> {
    permit.succeeded();
    None
}

/// A failure that leaves the breaker open, such as a probe's, is the host's fault: the job snoozes and keeps its attempt.
fn unwell(open: Option<CircuitOpen>, error: JobError) -> JobError {
    match open {
        Some(open) => {
            tracing::debug!(host = open.target, wait = ?open.wait, %error, "circuit open: the failed call is made again");
            open.into()
        }
        None => error,
    }
}

/// Why a call has no response.
struct Failed {
    refused: bool,
    text: String,
    /// No file descriptor was free for the call.
    lack: Option<Lack>,
}

impl Failed {
    fn new(error: &(dyn std::error::Error + 'static)) -> Self {
        match refused(error) {
            Some(refused) => Self { refused: true, text: refused.to_string(), lack: None },
            None => Self { refused: false, text: chain(error), lack: lacking(error) },
        }
    }
}

#[derive(Default)]
struct Body {
    bytes: Vec<u8>,
    truncated: bool,
}

impl Body {
    /// False if there is no room for more.
    fn push(&mut self, data: &[u8]) -> bool {
        let room = BODY_BYTES_MAX - self.bytes.len();
        self.bytes.extend_from_slice(&data[..data.len().min(room)]);
        self.truncated = data.len() > room;
        !self.truncated
    }

    /// As text whose JSON form fits into a result.
    fn into_text(self) -> (String, bool) {
        let mut text = String::from_utf8_lossy(&self.bytes).into_owned();
        let end = json_prefix(&text, BODY_JSON_BYTES_MAX);
        let truncated = self.truncated || end < text.len();
        text.truncate(end);
        (text, truncated)
    }
}

/// How much of `text` fits into `budget` bytes once it is written as a JSON string.
fn json_prefix(text: &str, budget: usize) -> usize {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += match c {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..='\u{1f}' => 6,
            c => c.len_utf8(),
        };
        if used > budget {
            return at;
        }
    }
    text.len()
}

/// The call carries the job's trace context, unless the payload sets another.
pub(super) async fn run(caller: &HttpCaller, payload: &Payload, trace: Option<&str>) -> Result<HttpCallOutput, JobError> {
    let input: HttpCallInput = payload.json()?;
    if !(1..=TIMEOUT_MS_MAX).contains(&input.timeout_ms) {
        return Err(bad("timeout_ms", format_args!("must be between 1 and {TIMEOUT_MS_MAX}")));
    }
    let within = Duration::from_millis(input.timeout_ms);
    let expected = input.expect_status;
    let HttpAnswer { head, body, open } = caller.call(request(input, trace)?, within).await?;
    judge(&head, expected).map_err(|error| unwell(open, error))?;
    let content_type = head.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (body, truncated) = body.into_text();
    Ok(HttpCallOutput { status: head.status().as_u16(), content_type, body, truncated })
}

fn judge(head: &Response<()>, expected: Option<u16>) -> Result<(), JobError> {
    let status = head.status();
    if expected.map_or_else(|| status.is_success(), |expected| status.as_u16() == expected) {
        return Ok(());
    }
    let text = format!("the server answered {status}");
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        return Err(match retry_after(head.headers()) {
            Some(pause) => JobError::retry_after(text, pause),
            None => JobError::retryable(text),
        });
    }
    let redirect = if status.is_redirection() { "; redirects are not followed" } else { "" };
    Err(JobError::fatal(format_args!("{text}{redirect}")))
}

/// The form in seconds; the form with a date is ignored, and the retry policy decides.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(RETRY_AFTER_MAX))
}

fn request(input: HttpCallInput, trace: Option<&str>) -> Result<Request<Full<Bytes>>, JobError> {
    let uri: Uri = input.url.parse().map_err(|error| bad("url", error))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none_or(str::is_empty) {
        return Err(bad("url", "must begin with http:// or https:// and a host"));
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(bad("url", "must not hold a password; use headers"));
    }
    let method = Method::from_bytes(input.method.as_bytes()).map_err(|error| bad("method", error))?;
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, HeaderValue::from_static("lockgate"));
    if let Some(trace) = trace.and_then(|trace| trace.parse().ok()) {
        headers.insert("traceparent", trace);
    }
    let body = match input.body {
        None => Bytes::new(),
        Some(Value::String(text)) => Bytes::from(text),
        Some(value) => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            Bytes::from(value.to_string())
        }
    };
    for (name, value) in &input.headers {
        let (name, value) = header(name, value)?;
        headers.insert(name, value);
    }
    let mut request = Request::new(Full::new(body));
    *request.uri_mut() = uri;
    *request.method_mut() = method;
    *request.headers_mut() = headers;
    Ok(request)
}

/// Headers that frame the message are set here only: otherwise a payload could smuggle in a second request.
fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), JobError> {
    let field = format!("headers.{name}");
    let name: HeaderName = name.parse().map_err(|error| bad(&field, error))?;
    if [CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING].contains(&name) {
        return Err(bad(&field, "is set by the worker"));
    }
    Ok((name, value.parse().map_err(|error| bad(&field, error))?))
}

fn bad(field: &str, why: impl std::fmt::Display) -> JobError {
    JobError::fatal(format_args!("bad payload: field `{field}`: {why}"))
}

/// The key of a host's breaker. Another port is another server.
fn host_of(uri: &Uri) -> String {
    let port = uri.port_u16().unwrap_or_else(|| if uri.scheme_str() == Some("https") { 443 } else { 80 });
    format!("{}:{port}", uri.host().unwrap_or_default().to_ascii_lowercase())
}

#[cfg(test)]
mod tests;
