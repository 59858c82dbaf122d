//! Turns of attempts that were lost: how soon each may run again.
//!
//! A rack that dies must not come back as one burst on the workers that are left. What finds no turn soon is lost with a later round: a
//! closed session that still holds attempts says by itself that there is something to do.

use std::time::Duration;

use lockgate_core::retry::LOSS_SPREAD;
use parking_lot::Mutex;
use tokio::time::Instant;

pub(crate) struct RequeuePacer {
    /// Between two turns.
    every: Duration,
    /// How far ahead turns are given: as long as it takes until the next round goes on with the rest.
    ahead: Duration,
    state: Mutex<PacerState>,
}

struct PacerState {
    next: Instant,
    /// When turns were last given without others before them.
    idle_until: Instant,
}

/// Turns that are given so soon after each other belong to one loss.
const ONE_LOSS: Duration = Duration::from_millis(50);

impl RequeuePacer {
    pub(crate) fn new(rate: u32, ahead: Duration) -> Self {
        // A turn takes some time, or there would be no end of them.
        let every = (Duration::from_secs(1) / rate.max(1)).max(Duration::from_nanos(1));
        let now = Instant::now();
        Self { every, ahead, state: Mutex::new(PacerState { next: now, idle_until: now }) }
    }

    /// How many come soon.
    pub(crate) fn left(&self) -> usize {
        let now = Instant::now();
        let next = self.state.lock().next.max(now);
        let span = (now + self.ahead).saturating_duration_since(next);
        usize::try_from(span.as_nanos() / self.every.as_nanos()).unwrap_or(usize::MAX)
    }

    /// The next ones, however late they are, as waits from now.
    pub(crate) fn take(&self, count: usize) -> Vec<Duration> {
        let now = Instant::now();
        let mut state = self.state.lock();
        if state.next <= now {
            state.idle_until = now;
        }
        let mut turn = state.next.max(now);
        // A turn within the next half a second is not kept to: core spreads those at random, so that a single loss is no burst. Turns
        // that follow others would then come before their time, on top of those that were given before.
        if state.idle_until + ONE_LOSS < now {
            turn = turn.max(now + LOSS_SPREAD);
        }
        let mut turns = Vec::with_capacity(count);
        for _ in 0..count {
            turns.push(turn.duration_since(now));
            turn += self.every;
        }
        state.next = turn;
        turns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn turns_follow_each_other_and_come_back_with_time() {
        let turns = RequeuePacer::new(1_000, Duration::from_secs(2));
        assert_eq!(turns.left(), 2_000);
        assert_eq!(turns.take(3), [0, 1, 2].map(Duration::from_millis));
        assert_eq!(turns.take(2_500).last(), Some(&Duration::from_millis(2_502)));
        assert_eq!((turns.left(), turns.take(1)), (0, vec![Duration::from_millis(2_503)]));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!((turns.left(), turns.take(1)), (496, vec![Duration::from_millis(1_504)]));
        tokio::time::advance(Duration::from_millis(1_400)).await;
        assert_eq!(turns.take(1), [LOSS_SPREAD], "104 ms are left of the turns before");
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!((turns.left(), turns.take(1)), (2_000, vec![Duration::ZERO]));
    }
}
