//! A stream ends with the credential that opened it: what was checked at the door is looked at again now and then.
//!
//! Rejected: looking whenever the answer is asked for more. It is asked only while the other side reads, and who is shut out could
//! stay for as long as they do not.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use http::{HeaderMap, HeaderValue, Response};
use hyper::body::Frame;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::{AuthRefusal, Authenticator};
use crate::errors;

/// How often. What another server did to a credential is known five seconds later at the latest, so a stream ends within seven.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What a request showed at the door.
#[derive(Clone)]
pub(super) enum Shown {
    Bearer(Arc<str>),
    Certificate(Arc<str>),
}

/// Among the extensions of an answer: ends what goes on beside it, and must end with it.
#[derive(Clone)]
pub(crate) struct Beside(pub(crate) CancellationToken);

/// Held by a stream for as long as it lasts.
pub(crate) struct Leash {
    gate: Authenticator,
    shown: Shown,
}

impl Leash {
    pub(super) fn new(gate: Authenticator, shown: Shown) -> Self {
        Self { gate, shown }
    }

    /// Ends the answer, and what goes on beside it, when the credential is over.
    pub(crate) fn hold(self, mut response: Response<Body>, is_grpc: bool) -> Response<Body> {
        let beside = response.extensions_mut().remove::<Beside>();
        let (said, over) = oneshot::channel();
        let looking = AbortOnDropHandle::new(tokio::spawn(self.look(said, beside)));
        response.map(|body| Body::new(WatchedBody { body: Some(body), over: Some(over), is_grpc, _looking: looking }))
    }

    async fn look(self, said: oneshot::Sender<AuthRefusal>, beside: Option<Beside>) {
        let refusal = loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if let Some(refusal) = self.gate.is_over(&self.shown).await {
                break refusal;
            }
        };
        tracing::info!(code = refusal.code(), "stream closed: its credential ended");
        // Why comes before the end: what ends beside the answer ends the answer too, and that must not look as if it had come to
        // its own end. Where the answer is gone, the reason has no receiver.
        let _ = said.send(refusal);
        if let Some(Beside(ended)) = beside {
            ended.cancel();
        }
    }
}

/// An answer that goes on until it or its credential ends.
struct WatchedBody {
    /// Absent once it has been cut. Dropping it ends what writes it.
    body: Option<Body>,
    /// Why it is over, once it is. Absent once the body is no longer polled.
    over: Option<oneshot::Receiver<AuthRefusal>>,
    is_grpc: bool,
    _looking: AbortOnDropHandle<()>,
}

impl WatchedBody {
    fn poll_over(&mut self, cx: &mut Context<'_>) -> Option<AuthRefusal> {
        let Poll::Ready(said) = Pin::new(self.over.as_mut()?).poll(cx) else { return None };
        self.over = None;
        said.ok()
    }
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        let Some(body) = this.body.as_mut() else { return Poll::Ready(None) };
        let frame = Pin::new(body).poll_frame(cx);
        // Every time, for a busy stream always has something to say; and after it, for it may have been ended meanwhile.
        if let Some(refusal) = this.poll_over(cx) {
            this.body = None;
            return Poll::Ready(this.is_grpc.then(|| Ok(Frame::trailers(last_words(&refusal)))));
        }
        frame
    }
}

/// How gRPC says why a stream has ended.
fn last_words(refusal: &AuthRefusal) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    if errors::refused(refusal).add_header(&mut trailers).is_err() {
        trailers.insert("grpc-status", HeaderValue::from_static("16"));
    }
    trailers
}
