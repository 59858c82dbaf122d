//! Releases the limits held by ended attempts, those of many callers in one script: results arrive in small messages, and
//! each script has a fixed cost.

use lockgate_core::ids::AttemptToken;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};

use super::{BATCH_MAX, RedisLanes};
use crate::scripts::SCRIPTS;

/// Attempts kept to be released later; for those beyond it, the loop that compares limits with the Store does it.
const UNHEARD_MAX: usize = 50_000;

pub(super) struct Releases {
    waiting: Mutex<PendingReleases>,
    /// Attempts whose release did not reach the server: it was unreachable, or had pools that this process had not adopted
    /// yet.
    unheard: Mutex<Vec<AttemptToken>>,
    /// Its holder sends the tokens of all waiting callers.
    turn: Semaphore,
}

#[derive(Default)]
struct PendingReleases {
    tokens: Vec<AttemptToken>,
    callers: Vec<oneshot::Sender<bool>>,
}

impl Default for Releases {
    fn default() -> Self {
        Self { waiting: Mutex::default(), unheard: Mutex::default(), turn: Semaphore::new(1) }
    }
}

impl Releases {
    fn ask(&self, tokens: Vec<AttemptToken>) -> oneshot::Receiver<bool> {
        let (caller, answer) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        waiting.tokens.extend(tokens);
        waiting.callers.push(caller);
        answer
    }

    fn take(&self) -> PendingReleases {
        std::mem::take(&mut *self.waiting.lock())
    }

    fn keep(&self, tokens: &[AttemptToken]) {
        let mut unheard = self.unheard.lock();
        let room = UNHEARD_MAX.saturating_sub(unheard.len());
        unheard.extend(tokens.iter().take(room).cloned());
    }
}

impl RedisLanes {
    /// Tokens that do not reach the server are sent again with the next ones.
    pub(super) async fn release_together(&self, attempts: Vec<AttemptToken>) -> bool {
        let mut answer = self.releases.ask(attempts.clone());
        let Ok(_turn) = self.releases.turn.acquire().await else { return false };
        let mut own = Vec::new();
        match answer.try_recv() {
            Ok(claimable) => return claimable,
            // The task that had our tokens was cancelled, perhaps before it sent them. A repeated release has no further
            // effect.
            Err(oneshot::error::TryRecvError::Closed) => own = attempts,
            Err(oneshot::error::TryRecvError::Empty) => {}
        }
        let PendingReleases { mut tokens, callers } = self.releases.take();
        tokens.extend(own);
        let claimable = self.release_all(tokens).await;
        for caller in callers {
            // The send fails if the caller has gone, which is not an error.
            let _ = caller.send(claimable);
        }
        claimable
    }

    /// Sends the releases that did not reach the server before, if there are any.
    pub(super) async fn release_unheard(&self) {
        if !self.releases.unheard.lock().is_empty() {
            self.release_all(Vec::new()).await;
        }
    }

    /// Sends these and the earlier ones. A repeated release has no further effect.
    async fn release_all(&self, mut attempts: Vec<AttemptToken>) -> bool {
        let catalog = self.catalog();
        attempts.append(&mut self.releases.unheard.lock());
        let (mut claimable, mut said) = (false, 0);
        for batch in attempts.chunks(BATCH_MAX) {
            let tokens = batch.iter().map(|token| token.as_str().to_owned()).collect();
            let Ok(mut answer) = self.say(&catalog, &SCRIPTS.release, "{}".to_owned(), tokens).await else {
                // The server cannot be reached now, so the rest is kept for later.
                self.releases.keep(&attempts[said..]);
                break;
            };
            said += batch.len();
            claimable |= answer.number() == Some(1);
        }
        claimable
    }
}
