//! How the memory Store answers those who ask whether it is well: it cannot be ill by itself, and its users must see that.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockgate_core::ids::{JobId, RunId, SessionId, TenantId};
use lockgate_core::job::JobState;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::MemoryStore;
use crate::store::{Change, Pinned, SnapshotKind, StoreError};

/// What [`check`](crate::Upkeep::check) answers. Other calls are not concerned.
#[derive(Clone, Debug, Default)]
pub enum Mood {
    #[default]
    Well,
    Refuses(StoreError),
    /// No answer until the mood changes.
    Hangs,
}

/// What becomes of commits that dispatch something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Dispatches {
    #[default]
    Go,
    /// They get no answer, and do nothing, until this changes.
    Wait,
    /// The same, for those that give something to this session.
    WaitFor(SessionId),
    /// Those that give something to this session fail, as if the Store were away.
    FailFor(SessionId),
}

/// Shared by the clones of a Store.
#[derive(Clone, Default)]
pub(super) struct Moods {
    mood: Arc<watch::Sender<Mood>>,
    dispatches: Arc<watch::Sender<Dispatches>>,
    starts_fail: Arc<AtomicBool>,
    births_fail: Arc<Mutex<Option<StoreError>>>,
    pinned: Arc<Mutex<Option<Pinned>>>,
    kept_back: Arc<Mutex<Option<SnapshotKind>>>,
    hidden: Arc<Mutex<BTreeSet<JobId>>>,
    pages: Arc<Mutex<Pages>>,
}

/// Of what loops read until nothing is left.
#[derive(Default)]
struct Pages {
    /// How long each of them takes.
    take: Duration,
    /// How long one of a lane takes.
    ready: Duration,
    /// Rows that were read of what is due.
    due: usize,
}

impl MemoryStore {
    pub fn set_mood(&self, mood: Mood) {
        self.mood.mood.send_replace(mood);
    }

    /// How many wait for an answer.
    pub fn waiting(&self) -> usize {
        self.mood.mood.receiver_count()
    }

    pub fn set_dispatches(&self, become_of: Dispatches) {
        self.mood.dispatches.send_replace(become_of);
    }

    /// How many commits wait that dispatch something.
    pub fn held_dispatches(&self) -> usize {
        self.mood.dispatches.receiver_count()
    }

    /// Whether commits that store a start fail from now on, as if the Store were away.
    pub fn fail_starts(&self, fail: bool) {
        self.mood.starts_fail.store(fail, Ordering::Relaxed);
    }

    /// Commits of new jobs fail like this from now on, whatever [`check`](crate::Upkeep::check) answers.
    pub fn fail_births(&self, error: Option<StoreError>) {
        *self.mood.births_fail.lock() = error;
    }

    /// Something holds on to an old state from now on.
    pub fn pin(&self, pinned: Option<Pinned>) {
        *self.mood.pinned.lock() = pinned;
    }

    /// What is in force of this kind cannot be read until this is taken back, as if the Store were away just then.
    pub fn keep_back(&self, kind: Option<SnapshotKind>) {
        *self.mood.kept_back.lock() = kind;
    }

    /// Whether a child of one of these is under way cannot be told from now on, as if the statement took too long.
    pub fn hide_families(&self, parents: impl IntoIterator<Item = JobId>) {
        *self.mood.hidden.lock() = parents.into_iter().collect();
    }

    /// Pages of what is due, of what is past its deadline and of what may be forgotten take this long from now on.
    pub fn slow_pages(&self, each: Duration) {
        self.mood.pages.lock().take = each;
    }

    /// Pages of what waits in a lane take this long from now on.
    pub fn slow_lanes(&self, each: Duration) {
        self.mood.pages.lock().ready = each;
    }

    /// Rows of what is due that were read so far, by everybody.
    pub fn due_rows(&self) -> usize {
        self.mood.pages.lock().due
    }

    /// The rows of these jobs cannot be decoded from now on, as if a newer version had written them.
    pub fn spoil(&self, jobs: impl IntoIterator<Item = JobId>) {
        self.open().0.spoilt.extend(jobs);
    }

    /// The same of runs.
    pub fn spoil_runs(&self, runs: impl IntoIterator<Item = RunId>) {
        self.open().0.spoilt_runs.extend(runs);
    }

    /// The same of schedules, by tenant and name.
    pub fn spoil_schedules(&self, schedules: impl IntoIterator<Item = (TenantId, Arc<str>)>) {
        self.open().0.spoilt_schedules.extend(schedules);
    }

    /// Changes of these jobs are not taken from now on, as if somebody had put a trigger in their way.
    pub fn refuse(&self, jobs: impl IntoIterator<Item = JobId>) {
        self.open().0.refused.extend(jobs);
    }

    /// The same of runs.
    pub fn refuse_runs(&self, runs: impl IntoIterator<Item = RunId>) {
        self.open().0.refused_runs.extend(runs);
    }

    /// The same of schedules, by tenant and name.
    pub fn refuse_schedules(&self, schedules: impl IntoIterator<Item = (TenantId, Arc<str>)>) {
        self.open().0.refused_schedules.extend(schedules);
    }

    /// How often somebody tried all the same.
    pub fn refusals(&self) -> usize {
        self.open().0.refusals
    }

    /// Every row can be decoded and written again.
    pub fn mend(&self) {
        let (mut data, _) = self.open();
        data.refused.clear();
        data.refused_runs.clear();
        data.refused_schedules.clear();
        data.spoilt.clear();
        data.spoilt_runs.clear();
        data.spoilt_schedules.clear();
    }
}

impl Moods {
    pub(super) fn pinned(&self) -> Option<Pinned> {
        self.pinned.lock().clone()
    }

    pub(super) async fn answer(&self) -> Result<(), StoreError> {
        let mut mood = self.mood.subscribe();
        // The sender lives as long as we do.
        let _ = mood.wait_for(|mood| !matches!(mood, Mood::Hangs)).await;
        match &*mood.borrow() {
            Mood::Refuses(error) => Err(error.clone()),
            Mood::Well | Mood::Hangs => Ok(()),
        }
    }

    pub(super) async fn let_go(&self, changes: &[Change]) -> Result<(), StoreError> {
        let begins = |change: &Change| change.transition.job.state() == JobState::Running;
        if self.starts_fail.load(Ordering::Relaxed) && changes.iter().any(begins) {
            return Err(StoreError::Unavailable("away".to_owned()));
        }
        if let Some(error) = self.births_fail.lock().clone()
            && changes.iter().any(|change| change.transition.job.version == 1)
        {
            return Err(error);
        }
        if *self.dispatches.borrow() == Dispatches::Go {
            return Ok(());
        }
        let sent = changes.iter().filter(|change| change.transition.job.state() == JobState::Dispatched);
        let to: BTreeSet<_> = sent.filter_map(|change| Some(change.transition.job.holder()?.session.clone())).collect();
        let waits = |now: &Dispatches| match now {
            Dispatches::Wait => !to.is_empty(),
            Dispatches::WaitFor(session) => to.contains(session),
            Dispatches::Go | Dispatches::FailFor(_) => false,
        };
        if waits(&self.dispatches.borrow()) {
            // The sender lives as long as we do.
            let _ = self.dispatches.subscribe().wait_for(|now| !waits(now)).await;
        }
        match &*self.dispatches.borrow() {
            Dispatches::FailFor(session) if to.contains(session) => Err(StoreError::Unavailable("away".to_owned())),
            _ => Ok(()),
        }
    }

    pub(super) async fn turn_page(&self) {
        let take = self.pages.lock().take;
        pass(take).await;
    }

    pub(super) async fn turn_ready(&self) {
        let take = self.pages.lock().ready;
        pass(take).await;
    }

    pub(super) fn read_due(&self, rows: usize) {
        self.pages.lock().due += rows;
    }

    pub(super) fn tells(&self, kind: SnapshotKind) -> Result<(), StoreError> {
        if *self.kept_back.lock() == Some(kind) {
            return Err(StoreError::Unavailable("no answer in time".to_owned()));
        }
        Ok(())
    }

    pub(super) fn shows(&self, lives: &[(JobId, u32)]) -> Result<(), StoreError> {
        let hidden = self.hidden.lock();
        if lives.iter().any(|(parent, _)| hidden.contains(parent)) {
            return Err(StoreError::Unavailable("no answer in time".to_owned()));
        }
        Ok(())
    }
}

async fn pass(span: Duration) {
    if !span.is_zero() {
        tokio::time::sleep(span).await;
    }
}
