//! What processes tell each other of their workers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::{AttemptToken, SessionId};
use crate::worker::Load;

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
