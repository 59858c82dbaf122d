//! Delays between retries.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// How often a transaction is repeated on the server's request. After that many tries another transaction wins every time.
pub(crate) const TRIES_MAX: u32 = 8;

const REPEAT_BASE: Duration = Duration::from_millis(1);
const REPEAT_CAP: Duration = Duration::from_millis(50);
const CONNECT_BASE: Duration = Duration::from_millis(20);
const CONNECT_CAP: Duration = Duration::from_secs(1);

/// The delay before a transaction is repeated for the n-th time.
pub(crate) fn repeat_after(tries: u32) -> Duration {
    spread(REPEAT_BASE, REPEAT_CAP, tries)
}

/// The delay before the next try to connect, after n failures.
pub(crate) fn connect_after(failures: u32) -> Duration {
    spread(CONNECT_BASE, CONNECT_CAP, failures)
}

/// Doubles up to the cap; up to half of it is subtracted at random, so that callers which failed together do not retry
/// together.
fn spread(base: Duration, cap: Duration, tries: u32) -> Duration {
    let whole = base.saturating_mul(1 << tries.min(16)).min(cap);
    let random = RandomState::new().hash_one(tries) % 1_000;
    whole / 2 + whole.mul_f64(random as f64 / 2_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_their_cap_and_differ() {
        for tries in 0..40 {
            let wait = repeat_after(tries);
            assert!(wait >= REPEAT_BASE / 2 && wait <= REPEAT_CAP, "{tries}: {wait:?}");
        }
        assert!(connect_after(30) >= CONNECT_CAP / 2);
        let waits: std::collections::BTreeSet<Duration> = (0..20).map(|_| repeat_after(5)).collect();
        assert!(waits.len() > 1);
    }
}
