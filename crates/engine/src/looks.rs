//! What is seen whenever somebody looks, and since when.
//!
//! A process that was stopped, or cut off with all the others, finds everything long over when it comes back. It must see for itself
//! that something stays as it is, and time in which it did not look says nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

pub(crate) struct Looks<K>(Mutex<SeenSince<K>>);

struct SeenSince<K> {
    /// Since when each was there in every look.
    since: BTreeMap<K, Instant>,
    last: Option<Instant>,
}

impl<K> Default for Looks<K> {
    fn default() -> Self {
        Self(Mutex::new(SeenSince { since: BTreeMap::new(), last: None }))
    }
}

impl<K: Ord> Looks<K> {
    /// Takes a look. For how long each has been there in every look, or nothing for one that is seen for the first time. Looks that
    /// are more than `apart` from each other begin anew.
    pub(crate) fn ages(&self, keys: impl Iterator<Item = K>, apart: Duration) -> Vec<Option<Duration>> {
        let now = Instant::now();
        let mut seen = self.0.lock();
        let mut before = std::mem::take(&mut seen.since);
        if seen.last.replace(now).is_some_and(|last| now.duration_since(last) > apart) {
            before.clear();
        }
        let mut ages = Vec::new();
        for key in keys {
            let since = before.get(&key).copied();
            ages.push(since.map(|since| now.duration_since(since)));
            seen.since.insert(key, since.unwrap_or(now));
        }
        ages
    }

    pub(crate) fn forget(&self) {
        self.0.lock().since.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const APART: Duration = Duration::from_secs(4);

    /// Looks after some seconds, and says the ages in seconds.
    async fn look(looks: &Looks<char>, after: u64, keys: &str) -> Vec<Option<u64>> {
        tokio::time::advance(Duration::from_secs(after)).await;
        looks.ages(keys.chars(), APART).into_iter().map(|age| age.map(|age| age.as_secs())).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn what_stays_grows_older_and_what_was_away_begins_anew() {
        let looks = Looks::default();
        assert_eq!(look(&looks, 0, "ab").await, [None, None]);
        assert_eq!(look(&looks, 2, "b").await, [Some(2)]);
        assert_eq!(look(&looks, 2, "ab").await, [None, Some(4)]);
        assert_eq!(look(&looks, 4, "ba").await, [Some(8), Some(4)]);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_stood_still_itself_begins_anew() {
        let looks = Looks::default();
        look(&looks, 0, "a").await;
        assert_eq!(look(&looks, 2, "a").await, [Some(2)]);
        assert_eq!(look(&looks, 30, "a").await, [None]);
        assert_eq!(look(&looks, 2, "a").await, [Some(2)]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_forgotten_begins_anew() {
        let looks = Looks::default();
        look(&looks, 0, "a").await;
        looks.forget();
        assert_eq!(look(&looks, 2, "a").await, [None]);
    }
}
