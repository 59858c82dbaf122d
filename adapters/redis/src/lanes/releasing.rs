//! What attempts that are over held of limits is freed, of many callers in one script: results come in small messages, and
//! each of these scripts has its price.

use lockgate_core::ids::AttemptToken;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};

use super::{BATCH_MAX, RedisLanes};
use crate::scripts::SCRIPTS;

pub(super) struct Releases {
    waiting: Mutex<Waiting>,
    /// Whoever has it speaks for all that wait.
    turn: Semaphore,
}

#[derive(Default)]
struct Waiting {
    tokens: Vec<AttemptToken>,
    callers: Vec<oneshot::Sender<bool>>,
}

impl Default for Releases {
    fn default() -> Self {
        Self { waiting: Mutex::default(), turn: Semaphore::new(1) }
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

    fn take(&self) -> Waiting {
        std::mem::take(&mut *self.waiting.lock())
    }
}

impl RedisLanes {
    /// What is not heard is found by whoever compares limits with the Store.
    pub(super) async fn release_together(&self, attempts: Vec<AttemptToken>) -> bool {
        let mut answer = self.releases.ask(attempts.clone());
        let Ok(_turn) = self.releases.turn.acquire().await else { return false };
        let mut own = Vec::new();
        match answer.try_recv() {
            Ok(claimable) => return claimable,
            // Whoever spoke for all was cut off, and perhaps not heard. Said twice, it frees once.
            Err(oneshot::error::TryRecvError::Closed) => own = attempts,
            Err(oneshot::error::TryRecvError::Empty) => {}
        }
        let Waiting { mut tokens, callers } = self.releases.take();
        tokens.extend(own);
        let claimable = self.release_all(&tokens).await;
        for caller in callers {
            // One that went away does not want its answer.
            let _ = caller.send(claimable);
        }
        claimable
    }

    async fn release_all(&self, attempts: &[AttemptToken]) -> bool {
        let book = self.book();
        let mut claimable = false;
        for batch in attempts.chunks(BATCH_MAX) {
            let tokens = batch.iter().map(|token| token.as_str().to_owned()).collect();
            let released = self.say(&book, &SCRIPTS.release, "{}".to_owned(), tokens).await;
            claimable |= released.is_ok_and(|mut answer| answer.number() == Some(1));
        }
        claimable
    }
}
