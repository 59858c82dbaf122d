//! The delay before the next try to attach.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(50);
pub(crate) const LONGEST: Duration = Duration::from_secs(5);

/// Doubles from 50 ms to 5 s. Up to half of each delay is subtracted at random, so that a thousand workers of a restarted
/// server do not reconnect at once.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { next: FIRST }
    }

    pub(crate) fn reset(&mut self) {
        self.next = FIRST;
    }

    /// The next delay, at most `longest`.
    pub(crate) fn next(&mut self, longest: Duration) -> Duration {
        // Without randomness the delays are equal, which is harmless.
        let share = f64::from(getrandom::u32().unwrap_or(u32::MAX)) / f64::from(u32::MAX);
        let wait = self.next.min(longest).mul_f64(0.5 + share / 2.0);
        self.next = (self.next * 2).min(LONGEST);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_five_seconds_and_start_again_after_a_reset() {
        let mut backoff = Backoff::new();
        let waits: Vec<_> = (0..10).map(|_| backoff.next(LONGEST)).collect();
        assert!(waits[0] >= FIRST / 2 && waits[0] <= FIRST);
        assert!(waits[9] >= LONGEST / 2 && waits[9] <= LONGEST);
        assert!(backoff.next(FIRST) <= FIRST, "somebody is in a hurry");
        assert!(backoff.next(LONGEST) >= LONGEST / 2);
        backoff.reset();
        assert!(backoff.next(LONGEST) <= FIRST);
    }
}
