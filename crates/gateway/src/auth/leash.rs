//! A stream ends with the credential that opened it: what was checked at the door is looked at again now and then.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use http::{HeaderMap, HeaderValue, Response};
use hyper::body::Frame;

use super::{Gate, Refusal};
use crate::errors;

/// How often. What another server did to a credential is known five seconds later at the latest, so a stream ends within seven.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What a request showed at the door.
#[derive(Clone)]
pub(super) enum Shown {
    Bearer(Arc<str>),
    Certificate(Arc<str>),
}

/// Held by a stream for as long as it lasts.
pub(crate) struct Leash {
    gate: Gate,
    shown: Shown,
}

impl Leash {
    pub(super) fn new(gate: Gate, shown: Shown) -> Self {
        Self { gate, shown }
    }

    /// Ends the answer when the credential is over.
    pub(crate) fn hold(self, response: Response<Body>, is_grpc: bool) -> Response<Body> {
        let over = Box::pin(self.over());
        response.map(|body| Body::new(Held { body: Some(body), over, is_grpc }))
    }

    async fn over(self) -> Refusal {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if let Some(refusal) = self.gate.is_over(&self.shown).await {
                return refusal;
            }
        }
    }
}

/// An answer that goes on until it or its credential ends.
struct Held {
    /// Absent once it has been cut. Dropping it ends what writes it.
    body: Option<Body>,
    over: Pin<Box<dyn Future<Output = Refusal> + Send>>,
    is_grpc: bool,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        let Some(body) = this.body.as_mut() else { return Poll::Ready(None) };
        // First, for a busy stream always has something to say.
        if let Poll::Ready(refusal) = this.over.as_mut().poll(cx) {
            tracing::info!(code = refusal.code(), "a stream was ended with its credential");
            this.body = None;
            return Poll::Ready(this.is_grpc.then(|| Ok(Frame::trailers(last_words(&refusal)))));
        }
        Pin::new(body).poll_frame(cx)
    }
}

/// How gRPC says why a stream has ended.
fn last_words(refusal: &Refusal) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    if errors::refused(refusal).add_header(&mut trailers).is_err() {
        trailers.insert("grpc-status", HeaderValue::from_static("16"));
    }
    trailers
}
