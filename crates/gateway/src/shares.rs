//! Who has how much of a shared limit: no client gets more than its part.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use parking_lot::Mutex;

/// Counted in so many maps, so that those who come at the same moment seldom wait for each other.
const SHARDS: usize = 16;

/// Only those who have something are remembered. A client that takes a part here has taken a permit of the whole before, so there
/// are never more of them than places.
#[derive(Debug)]
pub(crate) struct PerClientLimit<K> {
    most: usize,
    hasher: RandomState,
    shards: [Mutex<HashMap<K, usize>>; SHARDS],
}

/// One permit of a client; given back when dropped.
pub(crate) struct SharePermit<K: Eq + Hash> {
    shares: Arc<PerClientLimit<K>>,
    of: K,
}

impl<K: Clone + Eq + Hash> PerClientLimit<K> {
    /// At most so many for each, and one at least.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most: most.max(1), hasher: RandomState::new(), shards: Default::default() })
    }

    /// None if the client has its whole share already.
    pub(crate) fn take(self: &Arc<Self>, of: K) -> Option<SharePermit<K>> {
        {
            let mut counts = self.shard(&of).lock();
            let count = counts.entry(of.clone()).or_insert(0);
            if *count >= self.most {
                return None;
            }
            *count += 1;
        }
        Some(SharePermit { shares: self.clone(), of })
    }
}

impl<K: Eq + Hash> PerClientLimit<K> {
    fn shard(&self, of: &K) -> &Mutex<HashMap<K, usize>> {
        let at = self.hasher.hash_one(of) % SHARDS as u64;
        &self.shards[at as usize]
    }

    fn give_back(&self, of: &K) {
        let mut counts = self.shard(of).lock();
        let Some(count) = counts.get_mut(of) else { return };
        *count -= 1;
        if *count == 0 {
            counts.remove(of);
        }
    }
}

impl<K: Eq + Hash> Drop for SharePermit<K> {
    fn drop(&mut self) {
        self.shares.give_back(&self.of);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_gets_more_than_a_part_and_who_has_nothing_is_forgotten() {
        let shares = PerClientLimit::new(2);
        let mut had: Vec<_> = (0..2).map(|_| shares.take("a").expect("within the share")).collect();
        assert!(shares.take("a").is_none());
        let other = shares.take("b").expect("a share of its own");
        had.pop();
        had.push(shares.take("a").expect("one was given back"));
        assert!(shares.take("a").is_none());
        drop((had, other));
        assert!(shares.shards.iter().all(|shard| shard.lock().is_empty()));
    }

    #[test]
    fn everybody_gets_one_at_least() {
        let shares = PerClientLimit::new(0);
        let _only = shares.take(7).expect("one");
        assert!(shares.take(7).is_none());
    }
}
