//! Bodies of HTTP/1 requests that nothing read to their end. The rest of one stands in the way of the next request of its connection, which
//! therefore closes after the answer: the answer says so, else a client sends its next request into a closed connection.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response, Version};
use hyper::body::{Frame, Incoming, SizeHint};

/// Whether the body of one request was read to its end.
#[derive(Clone)]
pub(super) struct BodyEnd(Option<Arc<AtomicBool>>);

impl BodyEnd {
    /// Streams of HTTP/2 end one by one, and a request without a body has no rest.
    pub(super) fn of(request: &Request<Incoming>) -> Self {
        let may_have_a_rest = request.version() < Version::HTTP_2 && !request.body().is_end_stream();
        Self(may_have_a_rest.then(Arc::default))
    }

    pub(super) fn watch(&self, body: Incoming) -> TrackedBody {
        TrackedBody { body, read: self.0.clone() }
    }

    pub(super) fn told(&self, mut response: Response<Body>) -> Response<Body> {
        if self.0.as_ref().is_some_and(|read| !read.load(Ordering::Relaxed)) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

pub(super) struct TrackedBody {
    body: Incoming,
    read: Option<Arc<AtomicBool>>,
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        if let (Poll::Ready(frame), Some(read)) = (&polled, &this.read)
            && (frame.is_none() || this.body.is_end_stream())
        {
            read.store(true, Ordering::Relaxed);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
