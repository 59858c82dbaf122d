//! Answers that keep something until their whole body has been sent, or the client has gone.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use http::Response;
use hyper::body::{Frame, SizeHint};

/// `kept` is dropped with the body of the response.
pub(crate) fn kept_until_the_end<T: Send + Unpin + 'static>(response: Response<Body>, kept: T) -> Response<Body> {
    response.map(|body| Body::new(Keeping { body, _kept: kept }))
}

struct Keeping<T> {
    body: Body,
    _kept: T,
}

impl<T: Unpin> HttpBody for Keeping<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
