//! Token buckets by name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Bucket, Rate};
use crate::time::Timestamp;

/// Above this many, full buckets are dropped: a missing bucket counts as full.
const BUCKETS_MANY: usize = 10_000;
/// The most buckets. Names beyond it share one bucket per rate, so that a client gains nothing by using many names.
const BUCKETS_MAX: usize = 50_000;
/// How often full buckets are searched while there are many.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// The tokens that a call got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateGrant {
    pub granted: u32,
    /// When all buckets have a token again, if one of them has none now.
    pub again_in: Duration,
    /// The index of the bucket with the fewest tokens, if it had fewer than were wanted.
    pub short: Option<usize>,
}

impl RateGrant {
    /// The grant where no rate applies.
    pub const fn all(want: u32) -> Self {
        Self { granted: want, again_in: Duration::ZERO, short: None }
    }
}

/// The buckets of one process.
#[derive(Debug, Default)]
pub struct RateBuckets {
    buckets: BTreeMap<Arc<str>, Bucket>,
    swept_at: Option<Timestamp>,
}

impl RateBuckets {
    /// Takes up to `want` tokens from every one of these buckets: as many as the emptiest can give. A new bucket is full.
    pub fn take(&mut self, buckets: &[(Arc<str>, Rate)], want: u32, now: Timestamp) -> RateGrant {
        self.sweep(now);
        let (mut granted, mut again_in, mut short) = (want, Duration::ZERO, None);
        let names: Vec<Arc<str>> = buckets.iter().map(|(name, rate)| self.name(name, *rate)).collect();
        for (place, (name, (_, rate))) in names.iter().zip(buckets).enumerate() {
            let bucket = self.buckets.entry(name.clone()).or_insert_with(|| Bucket::new(*rate));
            // A changed rate starts a new bucket.
            if bucket.rate() != *rate {
                *bucket = Bucket::new(*rate);
            }
            bucket.set_back(now);
            let tokens = bucket.tokens(now);
            if tokens < granted {
                (granted, short) = (tokens, Some(place));
            }
        }
        for name in &names {
            let Some(bucket) = self.buckets.get_mut(name) else { continue };
            bucket.take_many(now, granted);
            again_in = again_in.max(bucket.again_at(now).map_or(Duration::ZERO, |at| at.since(now)));
        }
        RateGrant { granted, again_in, short }
    }

    fn sweep(&mut self, now: Timestamp) {
        let rests = self.swept_at.is_some_and(|at| at <= now && now.since(at) < SWEEP_EVERY);
        if self.buckets.len() > BUCKETS_MANY && !rests {
            self.buckets.retain(|_, bucket| bucket.full_at(now) > now);
            self.swept_at = Some(now);
        }
    }

    /// The name of the bucket that counts for `name`.
    fn name(&self, name: &Arc<str>, rate: Rate) -> Arc<str> {
        if self.buckets.len() < BUCKETS_MAX || self.buckets.contains_key(name) {
            return name.clone();
        }
        format!("others/{}/{}", rate.max, rate.window.as_millis()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_most_that_are_kept_share_a_bucket_and_the_others_keep_theirs() {
        let (mut buckets, rate, now) =
            (RateBuckets::default(), Rate { max: 2, window: Duration::from_secs(3600) }, Timestamp::from_millis(1));
        let mut take = |name: &str, at| buckets.take(&[(name.into(), rate)], 1, at).granted;
        assert_eq!((take("first", now), take("first", now)), (1, 1));
        for n in 0..BUCKETS_MAX {
            take(&format!("n{n}"), now);
        }
        let strangers = (0..10).map(|n| take(&format!("stranger{n}"), now)).sum::<u32>();
        assert!(strangers <= 2, "{strangers}");
        assert_eq!(take("first", now), 0);
        assert!(buckets.buckets.len() <= BUCKETS_MAX + 1);
        let later = now + Duration::from_secs(7200);
        assert_eq!(buckets.take(&[("stranger1".into(), rate)], 1, later).granted, 1, "all are full again and forgotten");
        assert_eq!(buckets.buckets.len(), 1);
    }
}
