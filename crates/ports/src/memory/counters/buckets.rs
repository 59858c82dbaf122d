//! Rates by name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::rate::{Bucket, Rate};
use lockgate_core::time::Timestamp;
use parking_lot::Mutex;

use crate::counters::Grant;

/// Buckets remembered before those that are full again are forgotten: a full bucket is as good as none.
const BUCKETS_MANY: usize = 10_000;
/// Buckets there may be. Names beyond it share one for each rate: whoever comes under many names gains nothing by it.
const BUCKETS_MAX: usize = 50_000;
/// How often it is looked which are full again, while there are many.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub struct Buckets {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    buckets: BTreeMap<Arc<str>, Bucket>,
    swept_at: Option<Timestamp>,
}

impl Buckets {
    /// As [`Counters::take`](crate::Counters::take).
    pub fn take(&self, buckets: &[(Arc<str>, Rate)], want: u32, now: Timestamp) -> Grant {
        let mut known = self.known.lock();
        known.sweep(now);
        let (mut granted, mut again_in, mut short) = (want, Duration::ZERO, None);
        let names: Vec<Arc<str>> = buckets.iter().map(|(name, rate)| known.name(name, *rate)).collect();
        for (place, (name, (_, rate))) in names.iter().zip(buckets).enumerate() {
            let bucket = known.buckets.entry(name.clone()).or_insert_with(|| Bucket::new(*rate));
            // Another rate is another bucket.
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
            let Some(bucket) = known.buckets.get_mut(name) else { continue };
            bucket.take_many(now, granted);
            again_in = again_in.max(bucket.again_at(now).map_or(Duration::ZERO, |at| at.since(now)));
        }
        Grant { granted, again_in, short }
    }
}

impl Known {
    fn sweep(&mut self, now: Timestamp) {
        let rests = self.swept_at.is_some_and(|at| at <= now && now.since(at) < SWEEP_EVERY);
        if self.buckets.len() > BUCKETS_MANY && !rests {
            self.buckets.retain(|_, bucket| bucket.full_at(now) > now);
            self.swept_at = Some(now);
        }
    }

    /// Of the bucket that counts for this name.
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
        let (buckets, rate, now) =
            (Buckets::default(), Rate { max: 2, window: Duration::from_secs(3600) }, Timestamp::from_millis(1));
        let take = |name: &str, at| buckets.take(&[(name.into(), rate)], 1, at).granted;
        assert_eq!((take("first", now), take("first", now)), (1, 1));
        for n in 0..BUCKETS_MAX {
            take(&format!("n{n}"), now);
        }
        let strangers = (0..10).map(|n| take(&format!("stranger{n}"), now)).sum::<u32>();
        assert!(strangers <= 2, "{strangers}");
        assert_eq!(take("first", now), 0);
        assert!(buckets.known.lock().buckets.len() <= BUCKETS_MAX + 1);
        let later = now + Duration::from_secs(7200);
        assert_eq!(take("stranger1", later), 1, "all are full again and forgotten");
        assert_eq!(buckets.known.lock().buckets.len(), 1);
    }
}
