//! Injected faults: the memory Store cannot fail by itself, so tests tell it to.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockgate_core::ids::{JobId, RunId, SessionId, TenantId};
use lockgate_core::job::JobState;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::MemoryStore;
use lockgate_ports::store::{JobChange, Pinned, SnapshotKind, StoreError};
use lockgate_sql::packed;

/// The answer of [`check`](lockgate_ports::Upkeep::check). Other calls are not affected.
#[derive(Clone, Debug, Default)]
pub enum HealthAnswer {
    #[default]
    Well,
    Refuses(StoreError),
    /// No answer until the mood changes.
    Hangs,
}

/// What happens to commits with a dispatch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DispatchFault {
    #[default]
    Go,
    /// They wait without effect until this changes.
    Wait,
    /// Like `Wait`, for commits that dispatch to this session.
    WaitFor(SessionId),
    /// Commits that dispatch to this session fail, as if the Store were unreachable.
    FailFor(SessionId),
}

/// Shared by the clones of a Store.
#[derive(Clone, Default)]
pub(super) struct InjectedFaults {
    mood: Arc<watch::Sender<HealthAnswer>>,
    dispatches: Arc<watch::Sender<DispatchFault>>,
    starts_fail: Arc<AtomicBool>,
    births_fail: Arc<Mutex<Option<StoreError>>>,
    schedules_fail: Arc<AtomicBool>,
    turn_takes: Arc<Mutex<Duration>>,
    pinned: Arc<Mutex<Option<Pinned>>>,
    kept_back: Arc<Mutex<Option<SnapshotKind>>>,
    hidden: Arc<Mutex<BTreeSet<JobId>>>,
    pages: Arc<Mutex<FaultyPages>>,
}

/// Of what loops read until nothing is left.
#[derive(Default)]
struct FaultyPages {
    /// How long each of them takes.
    take: Duration,
    /// How long one of a lane takes.
    ready: Duration,
    /// Rows that were read of what is due.
    due: usize,
}

impl MemoryStore {
    pub fn set_mood(&self, mood: HealthAnswer) {
        self.mood.mood.send_replace(mood);
    }

    /// How many wait for an answer.
    pub fn waiting(&self) -> usize {
        self.mood.mood.receiver_count()
    }

    pub fn set_dispatches(&self, become_of: DispatchFault) {
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

    /// Commits of new jobs fail like this from now on, whatever [`check`](lockgate_ports::Upkeep::check) answers.
    pub fn fail_births(&self, error: Option<StoreError>) {
        *self.mood.births_fail.lock() = error;
    }

    /// Whether schedules that are asked for by name cannot be read from now on, as if the Store were away.
    pub fn fail_schedules(&self, fail: bool) {
        self.mood.schedules_fail.store(fail, Ordering::Relaxed);
    }

    /// The next turn of a schedule waits for so long before it is taken. Others that come meanwhile do not.
    pub fn delay_next_turn(&self, span: Duration) {
        *self.mood.turn_takes.lock() = span;
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

    /// Rows of due jobs that all processes have read so far.
    pub fn due_rows(&self) -> usize {
        self.mood.pages.lock().due
    }

    /// The rows of these jobs cannot be decoded from now on, as if a newer version had written them.
    pub fn spoil(&self, jobs: impl IntoIterator<Item = JobId>) {
        self.open().0.spoilt.extend(jobs);
    }

    /// Writes a job as SQL stores do, puts one text in the place of another, and reads it again.
    pub fn rewrite(&self, job: &JobId, old: &str, new: &str) -> Result<(), serde_json::Error> {
        let (mut data, _) = self.open();
        let Some(seq) = data.ids.get(job).copied() else { return Ok(()) };
        if let Some(row) = data.jobs.get_mut(&seq) {
            let life = packed::life_text(&row.job.life)?.replace(old, new);
            row.job.life = packed::read_life(&life, row.job.life.state)?;
            row.events = packed::read_events(&packed::events_text(&row.events)?.replace(old, new))?;
        }
        Ok(())
    }

    /// Makes these runs undecodable.
    pub fn spoil_runs(&self, runs: impl IntoIterator<Item = RunId>) {
        self.open().0.spoilt_runs.extend(runs);
    }

    /// Makes these schedules undecodable, by tenant and name.
    pub fn spoil_schedules(&self, schedules: impl IntoIterator<Item = (TenantId, Arc<str>)>) {
        self.open().0.spoilt_schedules.extend(schedules);
    }

    /// Changes of these jobs are not taken from now on, as if a trigger refused them.
    pub fn refuse(&self, jobs: impl IntoIterator<Item = JobId>) {
        self.open().0.refused.extend(jobs);
    }

    /// Refuses writes of these runs.
    pub fn refuse_runs(&self, runs: impl IntoIterator<Item = RunId>) {
        self.open().0.refused_runs.extend(runs);
    }

    /// Refuses writes of these schedules, by tenant and name.
    pub fn refuse_schedules(&self, schedules: impl IntoIterator<Item = (TenantId, Arc<str>)>) {
        self.open().0.refused_schedules.extend(schedules);
    }

    /// How many refused changes were tried.
    pub fn refusals(&self) -> usize {
        self.open().0.refusals
    }

    /// Ends these faults: every row can be decoded and written again.
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

impl InjectedFaults {
    pub(super) fn pinned(&self) -> Option<Pinned> {
        self.pinned.lock().clone()
    }

    pub(super) async fn answer(&self) -> Result<(), StoreError> {
        let mut mood = self.mood.subscribe();
        // The sender lives as long as we do.
        let _ = mood.wait_for(|mood| !matches!(mood, HealthAnswer::Hangs)).await;
        match &*mood.borrow() {
            HealthAnswer::Refuses(error) => Err(error.clone()),
            HealthAnswer::Well | HealthAnswer::Hangs => Ok(()),
        }
    }

    pub(super) async fn let_go(&self, changes: &[JobChange]) -> Result<(), StoreError> {
        let begins = |change: &JobChange| change.transition.job.state() == JobState::Running;
        if self.starts_fail.load(Ordering::Relaxed) && changes.iter().any(begins) {
            return Err(StoreError::Unavailable("away".to_owned()));
        }
        if let Some(error) = self.births_fail.lock().clone()
            && changes.iter().any(|change| change.transition.job.version == 1)
        {
            return Err(error);
        }
        if *self.dispatches.borrow() == DispatchFault::Go {
            return Ok(());
        }
        let sent = changes.iter().filter(|change| change.transition.job.state() == JobState::Dispatched);
        let to: BTreeSet<_> = sent.filter_map(|change| Some(change.transition.job.holder()?.session.clone())).collect();
        let waits = |now: &DispatchFault| match now {
            DispatchFault::Wait => !to.is_empty(),
            DispatchFault::WaitFor(session) => to.contains(session),
            DispatchFault::Go | DispatchFault::FailFor(_) => false,
        };
        if waits(&self.dispatches.borrow()) {
            // The sender lives as long as we do.
            let _ = self.dispatches.subscribe().wait_for(|now| !waits(now)).await;
        }
        match &*self.dispatches.borrow() {
            DispatchFault::FailFor(session) if to.contains(session) => Err(StoreError::Unavailable("away".to_owned())),
            _ => Ok(()),
        }
    }

    pub(super) async fn wait_for_turn(&self) {
        let take = std::mem::take(&mut *self.turn_takes.lock());
        pass(take).await;
    }

    pub(super) fn names_schedules(&self) -> Result<(), StoreError> {
        if self.schedules_fail.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable("away".to_owned()));
        }
        Ok(())
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
