//! When the next attempt may start.

use std::time::Duration;

use crate::limits::Limits;

/// A random number in [0, 1) drawn by the caller, so that delays stay reproducible.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter(f64);

impl Jitter {
    /// Takes any 64 random bits.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    pub fn from_bits(bits: u64) -> Self {
        Self((bits >> 11) as f64 / (1u64 << 53) as f64)
    }

    fn up_to(self, span: Duration) -> Duration {
        span.mul_f64(self.0)
    }
}

/// Delay after the `failures`-th failure of the job's own work: base · 2ⁿ⁻¹ plus up to half of it again, capped.
pub fn backoff(failures: u32, jitter: Jitter, limits: &Limits) -> Duration {
    let doubled = limits.backoff_base.saturating_mul(2u32.saturating_pow(failures.saturating_sub(1).min(20)));
    let base = doubled.min(limits.backoff_max);
    (base + jitter.up_to(base / 2)).min(limits.backoff_max)
}

/// What a dead worker held is spread over at least this long.
const LOSS_SPREAD: Duration = Duration::from_millis(500);

/// Delay after the platform lost an attempt. The first loss goes back almost at once, or when it is its turn among many that
/// were lost at once; an attempt that is lost again and again backs off like any failure, from its turn on.
pub fn infra_backoff(infra_failures: u32, turn: Duration, jitter: Jitter, limits: &Limits) -> Duration {
    match infra_failures {
        0 | 1 if turn < LOSS_SPREAD => jitter.up_to(LOSS_SPREAD),
        0 | 1 => turn,
        again => turn + backoff(again - 1, jitter, limits),
    }
}

/// How often placing was tried in a given wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacingTries {
    pub made: u32,
    pub max: u32,
    /// Until the next one.
    pub next_in: Duration,
}

/// The tries that a wait is worth: after 1 s, 2 s more, 4 s more …, at most 30 s apart. No jitter: nobody is asked over a
/// network, so there is no herd to spread.
pub fn placing_tries(waited: Duration, limits: &Limits) -> PlacingTries {
    let mut made = 0;
    let mut at = placing_delay(made, limits);
    while at <= waited && made < limits.placing_tries_max {
        made += 1;
        at += placing_delay(made, limits);
    }
    PlacingTries { made, max: limits.placing_tries_max, next_in: at.saturating_sub(waited) }
}

/// The wait after which all tries are used up.
pub fn placing_span(limits: &Limits) -> Duration {
    (0..limits.placing_tries_max).map(|made| placing_delay(made, limits)).sum()
}

fn placing_delay(made: u32, limits: &Limits) -> Duration {
    limits.backoff_base.saturating_mul(2u32.saturating_pow(made.min(20))).min(limits.backoff_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_and_is_capped() {
        let limits = Limits::default();
        let none = Jitter::from_bits(0);
        let seconds: Vec<u64> = (1..=7).map(|n| backoff(n, none, &limits).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(backoff(u32::MAX, Jitter::from_bits(u64::MAX), &limits), limits.backoff_max);
    }

    #[test]
    fn tries_follow_the_ladder_and_end_with_its_span() {
        let limits = Limits::default();
        let made = |seconds| placing_tries(Duration::from_secs(seconds), &limits).made;
        assert_eq!([made(0), made(1), made(3), made(7), made(31), made(60), made(61)], [0, 1, 2, 3, 5, 5, 6]);
        let span = placing_span(&limits);
        assert_eq!(span, Duration::from_secs(1 + 2 + 4 + 8 + 16 + 45 * 30));
        assert_eq!(placing_tries(span, &limits).made, 50);
        assert_eq!(placing_tries(span - Duration::from_millis(1), &limits).made, 49);
        assert_eq!(placing_tries(Duration::from_secs(2), &limits).next_in, Duration::from_secs(1));
    }

    #[test]
    fn first_infra_loss_returns_within_half_a_second() {
        let limits = Limits::default();
        let late = Jitter::from_bits(u64::MAX);
        assert!(infra_backoff(1, Duration::ZERO, late, &limits) <= LOSS_SPREAD);
        assert_eq!(infra_backoff(2, Duration::ZERO, Jitter::from_bits(0), &limits), Duration::from_secs(1));
    }

    #[test]
    fn of_many_that_are_lost_each_waits_for_its_turn() {
        let limits = Limits::default();
        let turn = Duration::from_millis(1_700);
        assert_eq!(infra_backoff(1, turn, Jitter::from_bits(u64::MAX), &limits), turn);
        assert_eq!(infra_backoff(2, turn, Jitter::from_bits(0), &limits), turn + Duration::from_secs(1));
    }
}
