//! Retries: whether there is a next attempt, and when it may start.

mod policy;
pub(crate) mod read;
mod settings;

use std::time::Duration;

pub use policy::RetryPolicy;
pub use settings::RetrySettings;

use crate::limits::Limits;

/// A random number in [0, 1), drawn by the caller so that delays are reproducible.
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

/// Retries of the attempts that a dead worker held are spread over at least this long.
pub const LOSS_SPREAD: Duration = Duration::from_millis(500);

/// How often placement was tried during a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacingTries {
    pub made: u32,
    pub max: u32,
    /// The time until the next try.
    pub next_in: Duration,
}

/// Each wait between two tries is extended by less than this.
const PLACING_JITTER_MS: u64 = 500;

/// The times at which placement is tried: after 1 s, 2 s more, 4 s more …, each with up to half a second of jitter, at most
/// 30 s apart. The jitter is derived from the name of what is placed, so that different jobs are not tried in step, and so
/// that a restart computes equal times.
#[derive(Clone, Copy, Debug)]
pub struct PlacingLadder<'a> {
    limits: &'a Limits,
    salt: u64,
}

impl<'a> PlacingLadder<'a> {
    /// `name` identifies what is placed.
    pub fn new(name: &str, limits: &'a Limits) -> Self {
        // FNV-1a: equal in every release, and different for different names.
        let salt = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |salt: u64, byte| (salt ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        Self { limits, salt }
    }

    /// How many tries a wait of this length contains.
    pub fn tries(&self, waited: Duration) -> PlacingTries {
        let max = self.limits.placing_tries_max;
        let mut made = 0;
        let mut at = self.delay(made);
        while at <= waited && made < max {
            made += 1;
            at += self.delay(made);
        }
        PlacingTries { made, max, next_in: at.saturating_sub(waited) }
    }

    /// The wait after which this many tries were made.
    pub fn wait(&self, tries: u32) -> Duration {
        (0..tries.min(self.limits.placing_tries_max)).map(|made| self.delay(made)).sum()
    }

    /// The wait after which all tries are used up.
    pub fn span(&self) -> Duration {
        self.wait(self.limits.placing_tries_max)
    }

    fn delay(&self, made: u32) -> Duration {
        let doubled = self.limits.backoff_base.saturating_mul(2u32.saturating_pow(made.min(20)));
        doubled.saturating_add(self.jitter(made)).min(self.limits.backoff_max)
    }

    /// SplitMix64 of the salt and the number of the try.
    fn jitter(&self, made: u32) -> Duration {
        let mut bits = self.salt.wrapping_add(u64::from(made + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Duration::from_millis((bits ^ (bits >> 31)) % PLACING_JITTER_MS)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limits::SPAN_MS_MAX;

    #[test]
    fn backoff_doubles_and_is_capped() {
        let policy = usual();
        let none = Jitter::from_bits(0);
        let seconds: Vec<u64> = (1..=7).map(|n| policy.backoff(n, none).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(policy.backoff(u32::MAX, Jitter::from_bits(u64::MAX)), policy.cap);
    }

    #[test]
    fn each_part_of_a_delay_can_be_set() {
        let said = RetrySettings {
            base_ms: Some(100),
            factor_percent: Some(150),
            cap_ms: Some(300),
            jitter_percent: Some(100),
            ..RetrySettings::default()
        };
        let policy = usual().with(&said);
        let millis = |bits| (1..=5).map(|n| policy.backoff(n, Jitter::from_bits(bits)).as_millis()).collect::<Vec<_>>();
        assert_eq!(millis(0), [100, 150, 225, 300, 300]);
        assert_eq!(millis(u64::MAX)[..2], [200, 300], "up to as much again");
        let fixed = usual().with(&RetrySettings { factor_percent: Some(100), jitter_percent: Some(0), ..said });
        assert_eq!(fixed.backoff(9, Jitter::from_bits(u64::MAX)), Duration::from_millis(100));
    }

    fn settings_drawn() -> impl Strategy<Value = RetrySettings> {
        let some = |range: std::ops::RangeInclusive<u64>| proptest::option::of(range);
        let percent = |range: std::ops::RangeInclusive<u32>| proptest::option::of(range);
        (some(1..=SPAN_MS_MAX), percent(100..=1_000), some(1..=SPAN_MS_MAX), percent(0..=100)).prop_map(
            |(base_ms, factor_percent, cap_ms, jitter_percent)| RetrySettings {
                base_ms,
                factor_percent,
                cap_ms,
                jitter_percent,
                ..RetrySettings::default()
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_delay_grows_with_the_failures_and_stays_between_its_bounds(said in settings_drawn(), bits: u64, n in 1u32..2_000) {
            prop_assert_eq!(said.refusals(), []);
            let policy = usual().with(&said);
            let (least, some) = (Jitter::from_bits(0), Jitter::from_bits(bits));
            prop_assert!(policy.backoff(n, least) <= policy.backoff(n + 1, least));
            prop_assert!(policy.backoff(n, least) <= policy.backoff(n, some));
            prop_assert!(policy.backoff(n, some) <= policy.cap);
            prop_assert!(policy.backoff(1, least) <= policy.base);
        }

        #[test]
        fn of_two_that_say_something_the_second_counts(first in settings_drawn(), second in settings_drawn()) {
            let in_turn = usual().with(&first).with(&second);
            prop_assert_eq!(in_turn, usual().with(&second.or(&first)));
        }
    }

    fn usual() -> RetryPolicy {
        RetryPolicy::of(&Limits::default())
    }

    #[test]
    fn tries_follow_the_ladder_and_end_with_its_span() {
        let limits = Limits::default();
        let ladder = PlacingLadder::new("job.x", &limits);
        let steps: Vec<Duration> = (0..50).map(|made| ladder.wait(made + 1) - ladder.wait(made)).collect();
        for (step, base) in steps.iter().zip([1, 2, 4, 8, 16]) {
            let base = Duration::from_secs(base);
            assert!((base..base + Duration::from_millis(500)).contains(step), "{step:?} is not {base:?} and some jitter");
        }
        assert!(steps[5..].iter().all(|step| *step == limits.backoff_max), "the cap holds with the jitter");
        let span = ladder.span();
        assert_eq!(span, steps.iter().sum());
        for made in [1, 5, 6, 50] {
            assert_eq!(ladder.tries(ladder.wait(made)).made, made);
            assert_eq!(ladder.tries(ladder.wait(made) - Duration::from_millis(1)).made, made - 1);
        }
        assert_eq!(ladder.tries(ladder.wait(3)).next_in, steps[3]);
        assert_eq!(ladder.tries(span * 2).made, 50);
    }

    #[test]
    fn different_things_are_tried_at_times_of_their_own_and_each_always_at_the_same() {
        let limits = Limits::default();
        let first = |name: &str| PlacingLadder::new(name, &limits).wait(1);
        let waits: std::collections::BTreeSet<Duration> = (0..1_000).map(|n| first(&format!("job.{n}"))).collect();
        assert!(waits.len() > 350, "{} of 500 milliseconds are used", waits.len());
        assert!(waits.iter().all(|wait| (1_000..1_500).contains(&wait.as_millis())));
        assert_eq!(first("job.7"), first("job.7"));
    }

    #[test]
    fn first_infra_loss_returns_within_half_a_second() {
        let late = Jitter::from_bits(u64::MAX);
        assert!(usual().infra_backoff(1, Duration::ZERO, late) <= LOSS_SPREAD);
        assert_eq!(usual().infra_backoff(2, Duration::ZERO, Jitter::from_bits(0)), Duration::from_secs(1));
    }

    #[test]
    fn of_many_that_are_lost_each_waits_for_its_turn() {
        let turn = Duration::from_millis(1_700);
        assert_eq!(usual().infra_backoff(1, turn, Jitter::from_bits(u64::MAX)), turn);
        assert_eq!(usual().infra_backoff(2, turn, Jitter::from_bits(0)), turn + Duration::from_secs(1));
    }
}
