//! What gateways call. Every method answers with plain data or an [`ApiError`](crate::ApiError).

mod cancel;
mod overview;
mod read;
mod replay;
mod submit;
mod watch;
mod why;

use std::future::Future;

use crate::error::ApiError;

pub use overview::{LaneView, Queues, WorkerStatus, WorkerView};
pub use read::JobView;
pub use replay::{ReplayRequest, Replayed};
pub use submit::Submitted;
pub use watch::{Watch, WatchItem};
pub use why::{Considered, Why};

/// Runs a write and its effects to their end, even if the caller goes away meanwhile: a commit whose effects never
/// happened would leave a job that nobody offers, or a worker that nobody stops.
async fn to_the_end<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Result<T, ApiError> {
    tokio::spawn(work).await.map_err(|error| ApiError::Internal(format!("a request failed: {error}")))
}
