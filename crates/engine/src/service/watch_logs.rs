//! Log lines of a job as they come: those after a number, then live ones, until the job has ended.
//!
//! As with events, a ring only says "look". Lines are stored after the result that came with them, so that they never hold up
//! an end: the last ones are waited for a moment longer than the job.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::JobId;
use lockgate_core::request::Caller;
use lockgate_ports::store::LOG_LINES_MAX;
use lockgate_ports::{Bell, Ear, KeptLine};

use crate::error::ApiError;
use crate::{Engine, Inner};

/// A lost ring delays a reader by at most this.
const LOOK_ANYWAY: Duration = Duration::from_secs(2);
/// How long after the end of a job lines may still come.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The log of a job being followed.
pub struct LogWatch {
    inner: Arc<Inner>,
    id: JobId,
    ear: Ear,
    after: u64,
    queue: VecDeque<KeptLine>,
    stage: TailStage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TailStage {
    Live,
    /// The job has ended; its last words may be on their way.
    Ending,
    Over,
}

impl Engine {
    pub async fn watch_logs(&self, caller: &Caller, id: &JobId, after: u64) -> Result<LogWatch, ApiError> {
        let ear = self.inner.ports.bus.listen(Bell::Job(id.clone()));
        self.inner.find(caller, id).await?;
        let inner = self.inner.clone();
        let mut watch = LogWatch { inner, id: id.clone(), ear, after, queue: VecDeque::new(), stage: TailStage::Live };
        watch.look().await?;
        Ok(watch)
    }
}

impl LogWatch {
    /// The next line; None when the job has ended and nothing more will come.
    pub async fn next(&mut self) -> Result<Option<KeptLine>, ApiError> {
        loop {
            if let Some(line) = self.queue.pop_front() {
                return Ok(Some(line));
            }
            let patience = match self.stage {
                TailStage::Live => LOOK_ANYWAY,
                TailStage::Ending => LAST_WORDS,
                TailStage::Over => return Ok(None),
            };
            let rung = tokio::time::timeout(patience, self.ear.heard()).await.is_ok();
            if self.stage == TailStage::Ending && !rung {
                self.stage = TailStage::Over;
            }
            self.look().await?;
        }
    }

    async fn look(&mut self) -> Result<(), ApiError> {
        // The state first: what is stored before the end is seen by then.
        let job = self.inner.ports.store.load(std::slice::from_ref(&self.id)).await?.pop().flatten();
        let job = job.ok_or_else(|| ApiError::NotFound(self.id.clone()))?;
        let lines = self.inner.ports.store.logs(&self.id, self.after, LOG_LINES_MAX).await?;
        if let Some(last) = lines.last() {
            self.after = last.no;
        }
        self.queue.extend(lines);
        self.stage = match self.stage {
            TailStage::Over => TailStage::Over,
            _ if !job.state().is_terminal() => TailStage::Live,
            // Long ago: whatever it said is there.
            _ if job.life.ended_at.is_some_and(|at| self.inner.ports.clock.now().since(at) > LOOK_ANYWAY) => TailStage::Over,
            _ => TailStage::Ending,
        };
        Ok(())
    }
}
