//! What gateways call. Every method answers with plain data or an [`ApiError`](crate::ApiError).

mod access;
mod approvals;
mod audit;
mod builtin;
mod cancel;
mod children;
mod config;
mod dags;
mod discard;
mod hasten;
mod kernel;
mod overview;
mod policy;
mod pools;
mod read;
mod release;
mod replay;
mod runs;
mod sagas;
mod schedules;
mod submit;
mod tenants;
mod watch;
mod watch_logs;
mod watch_run;
mod why;

use std::future::Future;

use crate::error::ApiError;

pub use access::{MadeKey, NewCredential};
pub use approvals::ApprovalAnswer;
pub use audit::{Verified, verify_trail};
pub use children::{ChildPage, NewChild};
pub use config::{Activated, ConfigText};
pub use dags::DagView;
pub use overview::{LaneView, Queues, WorkerStatus, WorkerView};
pub use pools::PoolView;
pub use read::JobView;
pub use replay::{ReplayRequest, Replayed};
pub use runs::{RunOrder, RunView, StartRun, StartedRun};
pub use schedules::{AppliedAs, AppliedSchedule, BackfillSpan, ScheduleView};
pub use submit::Submitted;
pub use tenants::{ErasedPart, TenantView};
pub use watch::{JobWatch, WatchItem};
pub use watch_logs::LogWatch;
pub use watch_run::RunWatch;
pub use why::{Considered, PoolConsidered, Why};

/// Runs a write and its effects to their end, even if the caller goes away meanwhile: a commit whose effects never
/// happened would leave a job that nobody offers, or a worker that nobody stops.
pub(crate) async fn to_the_end<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Result<T, ApiError> {
    tokio::spawn(work).await.map_err(|error| ApiError::Internal(format!("a request failed: {error}")))
}
