//! What processes tell each other about their workers.
//!
//! The Store decides which workers exist. A sighting only reports the state of one: if it is lost, less is known for a
//! moment. Durations instead of times, because the clocks of processes differ.

use std::sync::Arc;

use lockgate_core::worker::WorkerProfile;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

pub use lockgate_core::edge::{LEAVING_MAX, SEEN_LIFE, Sighting};

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
