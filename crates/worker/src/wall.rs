//! The wall clock, read in one place. It only stamps; no decision depends on it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) fn now_ms() -> i64 {
    i64::try_from(now().as_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn now_ns() -> u64 {
    u64::try_from(now().as_nanos()).unwrap_or(u64::MAX)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a worker has no Clock port: stamps on logs, starts and spans are the only use"
)]
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
