//! Saves the work of taking a message twice. It never decides: what it forgets, the Store recognises.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::time::Instant;

/// As long as a message may stay unacknowledged: one that comes again because its acknowledgement was lost is recognised.
pub const PROCESSED_FOR: Duration = Duration::from_mins(10);
/// How long a process that died in the middle keeps others from taking over.
pub const IN_FLIGHT_FOR: Duration = Duration::from_mins(2);

/// Where a message stands, among all processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageStanding {
    /// No process has it: it is in flight from now on, and the caller's.
    Mine,
    InFlight,
    Processed,
}

/// The guard could not be asked. Work goes on without it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the message guard is away: {0}")]
pub struct GuardAway(pub String);

#[async_trait]
pub trait DuplicateGuard: Send + Sync {
    /// Takes every message that is neither in flight nor processed. Answers in their order.
    async fn begin(&self, ids: &[String]) -> Result<Vec<MessageStanding>, GuardAway>;

    /// Processed, for [`PROCESSED_FOR`].
    async fn finish(&self, ids: &[String]) -> Result<(), GuardAway>;

    /// No longer in flight, for others to take.
    async fn release(&self, ids: &[String]) -> Result<(), GuardAway>;
}

/// Knows what this process has, and nothing of others.
#[derive(Default)]
pub struct MemoryGuard {
    known: Mutex<SeenMessages>,
}

#[derive(Default)]
struct SeenMessages {
    by_id: BTreeMap<String, SeenMessage>,
    /// Processed ones in the order they will be forgotten. Those in flight are few and watched by their holders.
    forgetting: VecDeque<(Instant, String)>,
}

struct SeenMessage {
    until: Instant,
    is_processed: bool,
}

impl SeenMessages {
    fn begin(&mut self, id: &str, now: Instant) -> MessageStanding {
        match self.by_id.get(id) {
            Some(entry) if entry.until > now && entry.is_processed => MessageStanding::Processed,
            Some(entry) if entry.until > now => MessageStanding::InFlight,
            _ => {
                self.by_id.insert(id.to_owned(), SeenMessage { until: now + IN_FLIGHT_FOR, is_processed: false });
                MessageStanding::Mine
            }
        }
    }

    fn finish(&mut self, id: &str, now: Instant) {
        let until = now + PROCESSED_FOR;
        self.by_id.insert(id.to_owned(), SeenMessage { until, is_processed: true });
        self.forgetting.push_back((until, id.to_owned()));
    }

    fn forget(&mut self, now: Instant) {
        while let Some((_, id)) = self.forgetting.pop_front_if(|(until, _)| *until <= now) {
            if self.by_id.get(&id).is_some_and(|entry| entry.until <= now) {
                self.by_id.remove(&id);
            }
        }
    }
}

#[async_trait]
impl DuplicateGuard for MemoryGuard {
    async fn begin(&self, ids: &[String]) -> Result<Vec<MessageStanding>, GuardAway> {
        let (mut known, now) = (self.known.lock(), Instant::now());
        known.forget(now);
        Ok(ids.iter().map(|id| known.begin(id, now)).collect())
    }

    async fn finish(&self, ids: &[String]) -> Result<(), GuardAway> {
        let (mut known, now) = (self.known.lock(), Instant::now());
        ids.iter().for_each(|id| known.finish(id, now));
        Ok(())
    }

    async fn release(&self, ids: &[String]) -> Result<(), GuardAway> {
        let mut known = self.known.lock();
        for id in ids {
            if known.by_id.get(id).is_some_and(|entry| !entry.is_processed) {
                known.by_id.remove(id);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    async fn begin(guard: &MemoryGuard, id: &str) -> MessageStanding {
        guard.begin(&[id.to_owned()]).await.expect("memory is never away")[0]
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_is_taken_once_and_known_until_it_cannot_come_again() {
        let guard = MemoryGuard::default();
        let id = ["a".to_owned()];
        assert_eq!(begin(&guard, "a").await, MessageStanding::Mine);
        assert_eq!(begin(&guard, "a").await, MessageStanding::InFlight);
        guard.finish(&id).await.expect("memory");
        guard.release(&id).await.expect("memory");
        assert_eq!(begin(&guard, "a").await, MessageStanding::Processed);
        advance(PROCESSED_FOR).await;
        assert_eq!(begin(&guard, "b").await, MessageStanding::Mine);
        assert_eq!(guard.known.lock().by_id.len(), 1, "what is over is forgotten");
        assert_eq!(begin(&guard, "a").await, MessageStanding::Mine);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_given_back_or_held_too_long_can_be_taken() {
        let guard = MemoryGuard::default();
        assert_eq!(begin(&guard, "a").await, MessageStanding::Mine);
        guard.release(&["a".to_owned()]).await.expect("memory");
        assert_eq!(begin(&guard, "a").await, MessageStanding::Mine);
        advance(IN_FLIGHT_FOR).await;
        assert_eq!(begin(&guard, "a").await, MessageStanding::Mine);
    }
}
