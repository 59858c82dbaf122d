//! Rate limits: a token bucket with `max` tokens that fills evenly, once per window.

mod buckets;

use std::fmt;
use std::time::Duration;

use crate::config::ConfigReport;
use crate::config::read;
use crate::config::yaml::YamlNode;
use crate::time::Timestamp;

pub use buckets::{RateBuckets, RateGrant};

/// At most `max` in any `window` on average, and at most `max` at once after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub max: u32,
    pub window: Duration,
}

/// A faster rate limits nothing that this system can do.
const RATE_MAX: u32 = 1_000_000;

const WINDOWS: [(&str, Duration); 3] =
    [("s", Duration::from_secs(1)), ("m", Duration::from_secs(60)), ("h", Duration::from_secs(3600))];

impl Rate {
    /// Reads a number and a unit of time: `100/m`.
    pub(crate) fn read(node: &YamlNode, name: &str, report: &mut ConfigReport) -> Option<Self> {
        let rate = Self::parse(read::text(node, name, report)?);
        if rate.is_none() {
            report.refuse(node.at, format!("{name} must be 1 to {RATE_MAX} per s, m or h, such as 100/m"));
        }
        rate
    }

    fn parse(text: &str) -> Option<Self> {
        let (number, unit) = text.split_once('/')?;
        let (_, window) = WINDOWS.into_iter().find(|(name, _)| *name == unit)?;
        // `parse` accepts a sign, which is refused here.
        let digits = number.bytes().all(|byte| byte.is_ascii_digit());
        let max = number.parse().ok().filter(|max| digits && (1..=RATE_MAX).contains(max))?;
        Some(Self { max, window })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = WINDOWS.into_iter().find(|(_, window)| *window == self.window).map_or("?", |(unit, _)| unit);
        write!(f, "{}/{unit}", self.max)
    }
}

/// Stored as the time when the bucket is full again, which needs no update while time passes.
#[derive(Clone, Debug)]
pub struct Bucket {
    rate: Rate,
    /// In units of 1/`max` milliseconds, so that a token takes a whole number of units to come back.
    full_at: i128,
}

impl Bucket {
    pub fn new(rate: Rate) -> Self {
        Self { rate, full_at: i128::MIN }
    }

    pub fn rate(&self) -> Rate {
        self.rate
    }

    pub fn tokens(&self, now: Timestamp) -> u32 {
        let missing = (self.filled_at(now) - self.parts(now) + self.token() - 1) / self.token();
        u32::try_from(self.max() - missing).unwrap_or(0)
    }

    pub fn take(&mut self, now: Timestamp) {
        self.take_many(now, 1);
    }

    /// Takes `count` tokens. The bucket goes into debt if it has fewer.
    pub fn take_many(&mut self, now: Timestamp, count: u32) {
        self.full_at = self.filled_at(now) + i128::from(count) * self.token();
    }

    /// Returns a token that was not used.
    pub fn give_back(&mut self) {
        self.full_at = self.full_at.saturating_sub(self.token());
    }

    /// When the next token is available, if there is none now.
    pub fn again_at(&self, now: Timestamp) -> Option<Timestamp> {
        let first_at = self.filled_at(now) - (self.max() - 1) * self.token();
        (first_at > self.parts(now)).then(|| self.moment(first_at))
    }

    /// When the bucket is full again and need not be remembered.
    pub fn full_at(&self, now: Timestamp) -> Timestamp {
        self.moment(self.filled_at(now))
    }

    /// The clock was set back: the bucket is empty at worst. Otherwise a wrong clock would stop all work for as long as it
    /// was wrong.
    pub fn set_back(&mut self, now: Timestamp) {
        self.full_at = self.filled_at(now).min(self.parts(now) + self.max() * self.token());
    }

    /// Never in the past.
    fn filled_at(&self, now: Timestamp) -> i128 {
        self.full_at.max(self.parts(now))
    }

    fn max(&self) -> i128 {
        i128::from(self.rate.max.max(1))
    }

    /// The units in which one token comes back: the milliseconds of a window.
    fn token(&self) -> i128 {
        i128::try_from(self.rate.window.as_millis()).unwrap_or(1 << 62).max(1)
    }

    fn parts(&self, at: Timestamp) -> i128 {
        i128::from(at.as_millis()) * self.max()
    }

    /// The first whole millisecond that is not earlier.
    fn moment(&self, parts: i128) -> Timestamp {
        let millis = -(-parts).div_euclid(self.max());
        Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_and_a_unit() {
        for (text, max, seconds) in [("1/s", 1, 1), ("100/m", 100, 60), ("1000000/h", 1_000_000, 3600)] {
            let rate = Rate { max, window: Duration::from_secs(seconds) };
            assert_eq!((Rate::parse(text), rate.to_string().as_str()), (Some(rate), text));
        }
        for wrong in ["", "/", "5", "/s", "5/", "0/s", "+5/s", "5/d", "5 / s", "1.5/s", "1000001/s", "5/s/s"] {
            assert_eq!(Rate::parse(wrong), None, "{wrong}");
        }
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn bucket(max: u32, seconds: u64) -> Bucket {
        Bucket::new(Rate { max, window: Duration::from_secs(seconds) })
    }

    #[test]
    fn a_bucket_starts_full_and_fills_evenly() {
        let mut bucket = bucket(4, 2);
        for left in (0..4).rev() {
            bucket.take(at(1_000));
            assert_eq!(bucket.tokens(at(1_000)), left);
        }
        assert_eq!(bucket.again_at(at(1_000)), Some(at(1_500)));
        assert_eq!((bucket.tokens(at(1_499)), bucket.tokens(at(1_500)), bucket.tokens(at(2_500))), (0, 1, 3));
        assert_eq!(bucket.full_at(at(1_000)), at(3_000));
        assert_eq!((bucket.tokens(at(3_000)), bucket.tokens(at(99_000))), (4, 4));
        assert_eq!(bucket.again_at(at(1_500)), None);
    }

    #[test]
    fn a_token_that_needs_a_part_of_a_millisecond_is_there_at_the_next_whole_one() {
        let mut bucket = bucket(7, 1);
        (0..7).for_each(|_| bucket.take(at(0)));
        assert_eq!(bucket.again_at(at(0)), Some(at(143)));
        assert_eq!(
            (bucket.tokens(at(142)), bucket.tokens(at(143)), bucket.tokens(at(285)), bucket.tokens(at(286))),
            (0, 1, 1, 2)
        );
    }

    #[test]
    fn a_token_given_back_is_there_again_and_no_bucket_overflows() {
        let mut bucket = bucket(2, 1);
        bucket.take(at(0));
        bucket.take(at(0));
        bucket.give_back();
        assert_eq!(bucket.tokens(at(0)), 1);
        bucket.give_back();
        bucket.give_back();
        assert_eq!(bucket.tokens(at(0)), 2);
    }

    #[test]
    fn a_clock_that_is_set_back_costs_at_most_one_window() {
        let mut bucket = bucket(2, 1);
        bucket.take(at(1_000_000));
        bucket.set_back(at(0));
        assert_eq!((bucket.tokens(at(0)), bucket.tokens(at(500)), bucket.tokens(at(1_000))), (0, 1, 2));
    }

    proptest::proptest! {
        /// No span of time grants more than a full bucket and the tokens that came back during it, and `again_at` is exact.
        #[test]
        fn no_stretch_of_time_has_more_than_its_share(
            (max, steps) in (1u32..9, proptest::collection::vec((0i64..700, 1u32..4), 1..60))
        ) {
            let mut bucket = bucket(max, 1);
            let mut now = 0;
            let mut taken = Vec::new();
            for (pause, wanted) in steps {
                now += pause;
                for _ in 0..wanted.min(bucket.tokens(at(now))) {
                    bucket.take(at(now));
                    taken.push(now);
                }
                if let Some(again) = bucket.again_at(at(now)) {
                    let before = Timestamp::from_millis(again.as_millis() - 1);
                    assert_eq!((bucket.tokens(before), bucket.tokens(again)), (0, 1));
                }
            }
            for (first, from) in taken.iter().enumerate() {
                for (last, to) in taken.iter().enumerate().skip(first) {
                    let share = i64::from(max) + (to - from) * i64::from(max) / 1_000;
                    assert!((last - first + 1) as i64 <= share, "{taken:?}");
                }
            }
        }
    }
}
