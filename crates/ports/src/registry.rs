//! What processes tell each other about their workers.
//!
//! The Store decides which workers exist. A sighting only reports the state of one: if it is lost, less is known for a
//! moment. Durations instead of times, because the clocks of processes differ.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::{AttemptToken, SessionId};
use lockgate_core::worker::{Load, WorkerProfile};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

/// An entry that was not confirmed for this long is dropped.
pub const SEEN_LIFE: Duration = Duration::from_secs(30);

/// The most revoked attempts reported of one worker, so that a report fits into a message.
pub const LEAVING_MAX: usize = 1_000;

/// A worker as seen by the process that holds its stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    pub session: SessionId,
    /// Grows with every attach; a sighting with an older epoch is outdated.
    pub epoch: u64,
    /// Worker slots in use, as this process counts them.
    pub busy: u32,
    /// Worker slots in use, as the worker counts them.
    pub active_jobs: u32,
    pub load: Load,
    pub attached: bool,
    pub draining: bool,
    /// How long ago the worker was last heard.
    pub heard_ms_ago: u64,
    /// The worker's slots; 0 from a process that does not report them, and then the session's row has them.
    #[serde(default)]
    pub slots: u32,
    /// Grows with every post of a process, because messages may overtake each other.
    #[serde(default)]
    pub said: u64,
    /// Grows with every job that the process claims for the worker; None from a process that does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<u64>,
    /// Revoked attempts that the worker has not let go of, so their limits are not free. At most [`LEAVING_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaving: Vec<AttemptToken>,
}

/// All workers that one process knows of, its own and those of others, for processes that start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkersSnapshot {
    pub workers: Vec<SnapshotWorker>,
}

/// One worker of a snapshot. The profile is for people; the sighting is for processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotWorker {
    pub profile: Arc<WorkerProfile>,
    pub seen: Sighting,
}

/// What other processes see of their workers, in batches.
pub struct Sightings(broadcast::Receiver<Arc<[Sighting]>>);

impl Sightings {
    pub fn new(seen: broadcast::Receiver<Arc<[Sighting]>>) -> Self {
        Self(seen)
    }

    /// The next batch. A slow listener misses some. Never ends. Safe to use in `select!`.
    pub async fn next(&mut self) -> Arc<[Sighting]> {
        loop {
            match self.0.recv().await {
                Ok(seen) => return seen,
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}
