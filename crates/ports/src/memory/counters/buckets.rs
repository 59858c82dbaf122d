//! Rates by name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::rate::{Bucket, Rate};
use lockgate_core::time::Timestamp;
use parking_lot::Mutex;

use crate::counters::Grant;

/// Buckets remembered before those that are full again are forgotten: a full bucket is as good as none.
const BUCKETS_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub struct Buckets {
    known: Mutex<BTreeMap<Arc<str>, Bucket>>,
}

impl Buckets {
    /// As [`Counters::take`](crate::Counters::take).
    pub fn take(&self, buckets: &[(Arc<str>, Rate)], want: u32, now: Timestamp) -> Grant {
        let mut known = self.known.lock();
        if known.len() > BUCKETS_MAX {
            known.retain(|_, bucket| bucket.full_at(now) > now);
        }
        let (mut granted, mut again_in) = (want, Duration::ZERO);
        for (name, rate) in buckets {
            let bucket = known.entry(name.clone()).or_insert_with(|| Bucket::new(*rate));
            // Another rate is another bucket.
            if bucket.rate() != *rate {
                *bucket = Bucket::new(*rate);
            }
            bucket.set_back(now);
            granted = granted.min(bucket.tokens(now));
        }
        for (name, _) in buckets {
            let Some(bucket) = known.get_mut(name) else { continue };
            bucket.take_many(now, granted);
            again_in = again_in.max(bucket.again_at(now).map_or(Duration::ZERO, |at| at.since(now)));
        }
        Grant { granted, again_in }
    }
}
