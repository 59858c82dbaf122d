//! Retention times and amounts, equal for all Stores.

use std::time::Duration;

/// An idempotency key names its job for this long after the commit of the submit; then it is free again.
pub const KEY_LIFE: Duration = Duration::from_secs(7 * 24 * 3600);

/// How long closed sessions and edges are remembered. Much longer than any statement can be delayed: a forgotten session
/// would start again at epoch 1, and an old statement would match it.
pub const CLOSED_LIFE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Log lines kept per job. Older lines are dropped first, so that a job with much output cannot fill the disk.
pub const LOG_LINES_MAX: usize = 1_000;
