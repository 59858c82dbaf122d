//! One request to a collector. gRPC is an HTTP/2 request with a frame around the message, so one client serves both.

use std::error::Error;

use bytes::{BufMut, Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use prost::Message;

use crate::settings::{Protocol, Settings};
use crate::wire::{ExportTraceServiceRequest, ExportTraceServiceResponse};

/// A collector's answer is short.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The frame around a gRPC message: a flag and the length.
const FRAME_BYTES: usize = 5;

#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// A retry may succeed.
    #[error("{0}")]
    Away(String),
    /// A retry would be refused again.
    #[error("{0}")]
    Refused(String),
}

pub(crate) struct SpanSender {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl SpanSender {
    pub(crate) fn new(settings: &Settings) -> Self {
        let https = HttpsConnectorBuilder::new().with_tls_config(settings.tls.config()).https_or_http();
        let grpc = settings.protocol == Protocol::Grpc;
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new()).timer(TokioTimer::new()).http2_only(grpc);
        let client = match grpc {
            true => builder.build(https.enable_http2().build()),
            false => builder.build(https.enable_http1().build()),
        };
        Self { client }
    }

    /// Returns how many spans the collector rejected, with its reason.
    pub(crate) async fn send(
        &self,
        settings: &Settings,
        message: &ExportTraceServiceRequest,
    ) -> Result<Option<(u64, String)>, SendError> {
        let answer = tokio::time::timeout(settings.timeout, self.exchange(settings, message));
        let within = settings.timeout;
        let answer = answer.await.unwrap_or_else(|_| Err(SendError::Away(format!("no answer within {within:?}"))))?;
        let partial = answer.partial_success.filter(|partial| partial.rejected_spans > 0);
        Ok(partial.map(|partial| (partial.rejected_spans.unsigned_abs(), partial.error_message)))
    }

    async fn exchange(
        &self,
        settings: &Settings,
        message: &ExportTraceServiceRequest,
    ) -> Result<ExportTraceServiceResponse, SendError> {
        let answer = self.client.request(request(settings, message)).await;
        let answer = answer.map_err(|error| SendError::Away(told(settings, &error)))?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| SendError::Away(format!("the answer broke off: {error}")))?;
        match settings.protocol {
            Protocol::Http => of_http(head.status, &body.to_bytes()),
            Protocol::Grpc => {
                let trailers = body.trailers().cloned().unwrap_or_default();
                of_grpc(head.status, &head.headers, &trailers, &body.to_bytes())
            }
        }
    }
}

fn request(settings: &Settings, message: &ExportTraceServiceRequest) -> Request<Full<Bytes>> {
    let (body, content) = match settings.protocol {
        Protocol::Http => (Bytes::from(message.encode_to_vec()), "application/x-protobuf"),
        Protocol::Grpc => (framed(message), "application/grpc"),
    };
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = settings.target.clone();
    let headers = request.headers_mut();
    headers.extend(settings.headers.clone());
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content));
    if settings.protocol == Protocol::Grpc {
        headers.insert("te", HeaderValue::from_static("trailers"));
    }
    request
}

fn framed(message: &ExportTraceServiceRequest) -> Bytes {
    let bytes = message.encode_to_vec();
    let mut frame = BytesMut::with_capacity(FRAME_BYTES + bytes.len());
    frame.put_u8(0);
    frame.put_u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    frame.extend_from_slice(&bytes);
    frame.freeze()
}

fn told(settings: &Settings, error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    let told = || causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
    settings.tls.explain(error).unwrap_or_else(told)
}

fn of_http(status: StatusCode, body: &[u8]) -> Result<ExportTraceServiceResponse, SendError> {
    match status.as_u16() {
        // The status says success, so an answer that cannot be decoded does not matter.
        200..=299 => Ok(ExportTraceServiceResponse::decode(body).unwrap_or_default()),
        408 | 429 | 502..=504 => Err(SendError::Away(format!("the collector answered {status}"))),
        _ => Err(SendError::Refused(format!("the collector answered {status}"))),
    }
}

fn of_grpc(
    status: StatusCode,
    headers: &HeaderMap,
    trailers: &HeaderMap,
    body: &[u8],
) -> Result<ExportTraceServiceResponse, SendError> {
    if status != StatusCode::OK {
        return of_http(status, body).map(|_| ExportTraceServiceResponse::default());
    }
    // gRPC sends a refusal without a message in the headers alone.
    let code = trailers.get("grpc-status").or_else(|| headers.get("grpc-status")).and_then(|code| code.to_str().ok());
    match code {
        Some("0") => {
            let message = body.get(FRAME_BYTES..).unwrap_or_default();
            Ok(ExportTraceServiceResponse::decode(message).unwrap_or_default())
        }
        // Cancelled, deadline, exhausted, aborted, out of range, unavailable, data loss: the retryable codes of the
        // specification.
        Some(code @ ("1" | "4" | "8" | "10" | "11" | "14" | "15")) => {
            Err(SendError::Away(format!("the collector answered with gRPC code {code}")))
        }
        code => Err(SendError::Refused(format!("the collector answered with gRPC code {}", code.unwrap_or("none")))),
    }
}
