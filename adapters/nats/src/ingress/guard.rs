//! The message guard saves the work of processing a message twice. It never decides: the Store recognises repeats that the
//! guard has forgotten.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::time::Instant;

/// As long as a message may stay unacknowledged, so that one delivered again after a lost acknowledgement is recognised.
pub const PROCESSED_FOR: Duration = Duration::from_mins(10);
/// How long a process that died while processing keeps others from taking over.
pub const IN_FLIGHT_FOR: Duration = Duration::from_mins(2);

/// The state of a message among all processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageStanding {
    /// No process has the message: it is in flight from now on, for the caller.
    Mine,
    InFlight,
    Processed,
}

/// The guard could not be reached. Processing continues without it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the message guard is away: {0}")]
pub struct GuardAway(pub String);

#[async_trait]
pub trait DuplicateGuard: Send + Sync {
    /// Marks every message that is neither in flight nor processed. Answers in order.
    async fn begin(&self, ids: &[String]) -> Result<Vec<MessageStanding>, GuardAway>;

    /// Marks messages as processed, for [`PROCESSED_FOR`].
    async fn finish(&self, ids: &[String]) -> Result<(), GuardAway>;

    /// Ends the mark "in flight", so that other processes can take the messages.
    async fn release(&self, ids: &[String]) -> Result<(), GuardAway>;
}

/// A guard that knows only the messages of this process.
#[derive(Default)]
pub struct MemoryGuard {
    known: Mutex<SeenMessages>,
}

#[derive(Default)]
struct SeenMessages {
    by_id: BTreeMap<String, SeenMessage>,
    /// Processed messages in the order of expiry. Those in flight are few and ended by their holders.
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
