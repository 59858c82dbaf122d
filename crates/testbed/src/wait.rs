//! Waiting for a condition, never for a time.

use std::time::{Duration, Instant};

use anyhow::bail;

/// Asks until the answer is yes. Fails with `what` after `deadline`.
#[expect(clippy::disallowed_methods, reason = "real servers live in real time, and here alone they are waited for")]
pub fn wait_until(what: &str, deadline: Duration, mut yes: impl FnMut() -> bool) -> anyhow::Result<()> {
    let end = Instant::now() + deadline;
    while !yes() {
        if Instant::now() >= end {
            bail!("{what}: not within {deadline:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
