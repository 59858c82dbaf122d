//! How long and how much every Store keeps, the same for all adapters.

use std::time::Duration;

/// An idempotency key names its job this long after the submit was committed; then it is free again.
pub const KEY_LIFE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Closed sessions and edges are remembered this long. Much longer than any statement can be delayed, because a
/// forgotten session would start again at epoch 1 and an old statement would seem to match.
pub const CLOSED_LIFE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Log lines kept per job; older ones are dropped first, so that a chatty job cannot fill the disk.
pub const LOG_LINES_MAX: usize = 1_000;
