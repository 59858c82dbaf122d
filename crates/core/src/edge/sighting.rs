//! What processes tell each other of their workers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::{AttemptToken, SessionId};
use crate::worker::Load;

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
