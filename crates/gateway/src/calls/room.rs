//! Places for calls, and answers that keep theirs for as long as they go on.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use http::Response;
use hyper::body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Unanswered;

/// Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Room {
    places: Arc<Semaphore>,
}

/// Free again when dropped.
pub(super) struct Place {
    _permit: OwnedSemaphorePermit,
}

impl Room {
    pub(super) fn new(max: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(max)) }
    }

    pub(super) fn enter(&self) -> Result<Place, Unanswered> {
        let permit = self.places.clone().try_acquire_owned().map_err(|_| Unanswered::Crowded)?;
        Ok(Place { _permit: permit })
    }
}

impl Place {
    /// Held until the whole answer has been given, or nobody listens any more.
    pub(super) fn until_the_end_of(self, response: Response<Body>) -> Response<Body> {
        response.map(|body| Body::new(Kept { body, _place: self }))
    }
}

struct Kept {
    body: Body,
    _place: Place,
}

impl HttpBody for Kept {
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
