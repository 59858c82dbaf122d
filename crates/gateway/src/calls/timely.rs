//! Bodies that come in time: what was sent of one so far is memory, and its call holds a place.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::BoxError;
use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

/// For the whole body of a request, over REST and over gRPC. Only streams may take as long as they like.
pub(crate) const BODY_WITHIN: Duration = Duration::from_secs(60);

/// What becomes of a body that takes longer.
#[derive(Debug, thiserror::Error)]
#[error("the body must be sent within {BODY_WITHIN:?}")]
pub(crate) struct SentLate;

impl SentLate {
    /// Part of the API.
    pub(crate) const CODE: &'static str = "request_timeout";
}

pub(crate) struct Timely<B> {
    body: B,
    until: Instant,
    /// Made when the body is waited for: nearly all have come by then, and cost no timer.
    patience: Option<Pin<Box<Sleep>>>,
    late: fn() -> BoxError,
}

impl<B> Timely<B> {
    /// `late` is what the reader of the body is told when the time is over.
    pub(crate) fn new(body: B, late: fn() -> BoxError) -> Self {
        Self { body, until: Instant::now() + BODY_WITHIN, patience: None, late }
    }

    fn is_late(&mut self, cx: &mut Context<'_>) -> bool {
        self.patience.as_mut().is_some_and(|patience| patience.as_mut().poll(cx).is_ready())
    }
}

impl<B> HttpBody for Timely<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        // First, for a client that sends a byte now and then is always ready.
        if this.is_late(cx) {
            return Poll::Ready(Some(Err((this.late)())));
        }
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        if this.patience.is_none() {
            this.patience = Some(Box::pin(sleep_until(this.until)));
            if this.is_late(cx) {
                return Poll::Ready(Some(Err((this.late)())));
            }
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::{StreamExt, stream};
    use http_body_util::{BodyExt, Full, StreamBody};

    use super::*;

    fn late() -> BoxError {
        Box::new(SentLate)
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_comes_too_slowly_is_cut_off() {
        let begun = Instant::now();
        let byte = || Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"x")));
        let trickle = stream::unfold((), move |()| async move {
            tokio::time::sleep(Duration::from_secs(7)).await;
            Some((byte(), ()))
        });
        for body in [trickle.boxed(), stream::pending().boxed()] {
            let begun = Instant::now();
            let read = Timely::new(StreamBody::new(body), late).collect().await;
            assert!(read.err().is_some_and(|error| error.is::<SentLate>()));
            assert_eq!(begun.elapsed(), BODY_WITHIN);
        }
        assert_eq!(begun.elapsed(), BODY_WITHIN * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_comes_in_time_is_read_whole() {
        let read = Timely::new(Full::new(Bytes::from_static(b"all of it")), late).collect().await;
        assert_eq!(read.expect("in time").to_bytes(), "all of it");
    }
}
