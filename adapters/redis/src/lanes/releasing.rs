//! What attempts that are over held of limits is freed, of many callers in one script: results come in small messages, and
//! each of these scripts has its price.

use lockgate_core::ids::AttemptToken;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};

use super::{BATCH_MAX, RedisLanes};
use crate::scripts::SCRIPTS;

/// Attempts kept to be said again; what goes beyond is found by the loop that compares limits with the Store.
const UNHEARD_MAX: usize = 50_000;

pub(super) struct Releases {
    waiting: Mutex<PendingReleases>,
    /// Over, and not heard: the server was away, or followed pools that this process had not adopted yet.
    unheard: Mutex<Vec<AttemptToken>>,
    /// Its holder sends the tokens of all that wait.
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
    /// What is not heard is said again with the next ones.
    pub(super) async fn release_together(&self, attempts: Vec<AttemptToken>) -> bool {
        let mut answer = self.releases.ask(attempts.clone());
        let Ok(_turn) = self.releases.turn.acquire().await else { return false };
        let mut own = Vec::new();
        match answer.try_recv() {
            Ok(claimable) => return claimable,
            // The sender was cut off, and perhaps not heard. Said twice, it frees once.
            Err(oneshot::error::TryRecvError::Closed) => own = attempts,
            Err(oneshot::error::TryRecvError::Empty) => {}
        }
        let PendingReleases { mut tokens, callers } = self.releases.take();
        tokens.extend(own);
        let claimable = self.release_all(tokens).await;
        for caller in callers {
            // One that went away does not want its answer.
            let _ = caller.send(claimable);
        }
        claimable
    }

    /// Says what was not heard before, if there is anything.
    pub(super) async fn release_unheard(&self) {
        if !self.releases.unheard.lock().is_empty() {
            self.release_all(Vec::new()).await;
        }
    }

    /// These, and what was not heard before. Said twice, it frees once.
    async fn release_all(&self, mut attempts: Vec<AttemptToken>) -> bool {
        let catalog = self.catalog();
        attempts.append(&mut self.releases.unheard.lock());
        let (mut claimable, mut said) = (false, 0);
        for batch in attempts.chunks(BATCH_MAX) {
            let tokens = batch.iter().map(|token| token.as_str().to_owned()).collect();
            let Ok(mut answer) = self.say(&catalog, &SCRIPTS.release, "{}".to_owned(), tokens).await else {
                // Nor would the rest be heard now.
                self.releases.keep(&attempts[said..]);
                break;
            };
            said += batch.len();
            claimable |= answer.number() == Some(1);
        }
        claimable
    }
}
