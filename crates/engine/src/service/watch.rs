//! Watch: replay from any event, then live, without a gap.
//!
//! The ear is opened before the first read, so an event is either read or rung for. A ring only says "look": the Store
//! is read again after the last event seen, which makes doubled and lost rings harmless.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::JobId;
use lockgate_core::job::{JobEvent, JobState};
use lockgate_core::request::Caller;
use lockgate_ports::{Bell, Ear};

use crate::error::ApiError;
use crate::{Engine, Inner};
use lockgate_core::edge::AttemptProgress;

#[derive(Clone, Debug)]
pub enum WatchItem {
    Event(JobEvent),
    Progress(AttemptProgress),
}

/// A job being followed. Ends when the job has ended and everything was seen.
pub struct JobWatch {
    inner: Arc<Inner>,
    id: JobId,
    ear: Ear,
    after: u64,
    queue: VecDeque<WatchItem>,
    state: JobState,
    shown: Option<AttemptProgress>,
}

/// A lost ring delays a watcher by at most this.
const LOOK_ANYWAY: Duration = Duration::from_secs(2);

impl Engine {
    pub async fn watch(&self, caller: &Caller, id: &JobId, after: u64) -> Result<JobWatch, ApiError> {
        let ear = self.inner.ports.bus.listen(Bell::Job(id.clone()));
        let job = self.inner.find(caller, id).await?;
        let inner = self.inner.clone();
        let mut watch =
            JobWatch { inner, id: id.clone(), ear, after, queue: VecDeque::new(), state: job.state(), shown: None };
        watch.look().await?;
        Ok(watch)
    }
}

impl JobWatch {
    /// The next item; None when the job has ended and nothing more will come.
    pub async fn next(&mut self) -> Result<Option<WatchItem>, ApiError> {
        loop {
            if let Some(item) = self.queue.pop_front() {
                return Ok(Some(item));
            }
            if self.state.is_terminal() {
                return Ok(None);
            }
            tokio::select! {
                biased;
                () = self.ear.heard() => {}
                () = tokio::time::sleep(LOOK_ANYWAY) => {}
            }
            self.look().await?;
        }
    }

    async fn look(&mut self) -> Result<(), ApiError> {
        let store = &self.inner.ports.store;
        let page = store.events(&self.id, self.after).await?.ok_or_else(|| ApiError::NotFound(self.id.clone()))?;
        self.state = page.state;
        if let Some(last) = page.events.last() {
            self.after = last.n;
        }
        self.queue.extend(page.events.into_iter().map(WatchItem::Event));
        if !self.state.is_terminal() {
            self.look_at_progress().await?;
        }
        Ok(())
    }

    async fn look_at_progress(&mut self) -> Result<(), ApiError> {
        let job = self.inner.ports.store.load(std::slice::from_ref(&self.id)).await?.pop().flatten();
        let progress = job.and_then(|job| self.inner.edge.look(|edge| edge.progress(&job)));
        if progress.is_some() && progress != self.shown {
            self.queue.extend(progress.clone().map(WatchItem::Progress));
            self.shown = progress;
        }
        Ok(())
    }
}
