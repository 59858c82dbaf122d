//! Answers over gRPC that go on: they end when their client's time is over.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use http::{HeaderMap, HeaderValue, Response};
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};
use tonic::Code;

/// The answer, cut off at `until` with the status that the client gives itself then.
pub(super) fn ending_at(until: Instant, answer: Response<Body>) -> Response<Body> {
    answer.map(|body| Body::new(EndingBody { body, until, patience: None, over: false }))
}

struct EndingBody {
    body: Body,
    until: Instant,
    /// Made when the body is waited for: most are there at once, and cost no timer.
    patience: Option<Pin<Box<Sleep>>>,
    over: bool,
}

impl HttpBody for EndingBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        if this.over {
            return Poll::Ready(None);
        }
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        let until = this.until;
        let patience = this.patience.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if patience.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        this.over = true;
        // What the stream held is let go with its body, not when the client has read the end.
        this.body = Body::empty();
        Poll::Ready(Some(Ok(Frame::trailers(too_late()))))
    }

    fn is_end_stream(&self) -> bool {
        self.over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn too_late() -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(Code::DeadlineExceeded as i32));
    trailers.insert("grpc-message", HeaderValue::from_static("the time for this call was over"));
    trailers
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::{StreamExt, stream};
    use http_body_util::{BodyExt, StreamBody};

    use super::*;

    fn answer(body: impl HttpBody<Data = Bytes, Error = axum::Error> + Send + 'static) -> Response<Body> {
        ending_at(Instant::now() + Duration::from_secs(5), Response::new(Body::new(body)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_with_its_clients_time() {
        let one = stream::iter([Ok::<_, axum::Error>(Frame::data(Bytes::from_static(b"one")))]);
        let begun = Instant::now();
        let read = answer(StreamBody::new(one.chain(stream::pending()))).into_body().collect().await.expect("it ends");
        assert_eq!(begun.elapsed(), Duration::from_secs(5));
        let status = read.trailers().and_then(|trailers| trailers.get("grpc-status")).cloned();
        assert_eq!((read.to_bytes(), status), (Bytes::from_static(b"one"), Some(HeaderValue::from_static("4"))));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_ends_by_itself_is_left_as_it_is() {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static("0"));
        let frames = [Ok::<_, axum::Error>(Frame::data(Bytes::from_static(b"all"))), Ok(Frame::trailers(trailers))];
        let read = answer(StreamBody::new(stream::iter(frames))).into_body().collect().await.expect("whole");
        assert_eq!(read.trailers().and_then(|trailers| trailers.get("grpc-status")), Some(&HeaderValue::from_static("0")));
        assert_eq!(read.to_bytes(), "all");
    }
}
