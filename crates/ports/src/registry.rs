//! What processes tell each other of their workers.
//!
//! Which workers there are is the Store's to say. A sighting says how one of them fares: it may be lost, and then less is known
//! for a moment. Spans instead of times, because clocks of processes differ.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::{AttemptToken, SessionId};
use lockgate_core::worker::{Load, WorkerProfile};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

/// An entry that was not confirmed for this long no longer holds.
pub const SEEN_LIFE: Duration = Duration::from_secs(30);

/// Most attempts on their way out that are told of one worker, so that what is said of it fits into a message.
pub const LEAVING_MAX: usize = 1_000;

/// A worker as the process sees it that holds its stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    pub session: SessionId,
    /// Grows with every attach: what is said of an older one is old news.
    pub epoch: u64,
    /// Places in use.
    pub busy: u32,
    /// Slots in use by the worker's own count.
    pub active_jobs: u32,
    pub load: Load,
    pub attached: bool,
    pub draining: bool,
    /// How long ago it was heard of.
    pub heard_ms_ago: u64,
    /// Jobs that it runs at once; 0 from a process that does not say it, and then it is what its row says.
    #[serde(default)]
    pub slots: u32,
    /// Grows with everything that a process says of its workers: messages may overtake each other.
    #[serde(default)]
    pub said: u64,
    /// Grows with every job that its process claims for it; none from a process that does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<u64>,
    /// Attempts that no longer count and that it has not let go of: what they took of limits is not free. No more of them than
    /// [`LEAVING_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaving: Vec<AttemptToken>,
}

/// All workers that one process knows of, for those that start: what it has heard itself, and from others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkersSnapshot {
    pub workers: Vec<SnapshotWorker>,
}

/// One worker of a snapshot. The profile is for people who look into it; the sighting is for processes.
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
