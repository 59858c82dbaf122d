//! Rows that nobody here can decode. Those of a page are left out by the Store; those that are asked for by name are asked for one
//! by one, so that none of them stops its neighbours. And rows that the Store does not take: they stay as they are.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockgate_core::dag::Run;
use lockgate_core::ids::{JobId, RunId};
use lockgate_core::job::Job;
use lockgate_ports::{ChangeError, Met, RunRefusal, StoreError, Unreadable};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::Inner;
use crate::error::ApiError;

/// What the Store did not take is left alone for so long by whoever would look sooner.
const RESTS_FOR: Duration = Duration::from_secs(5);
/// How many are remembered for that. More are tried as often as anybody looks.
const RESTING_MAX: usize = 1_000;

/// What is there under a name.
pub(crate) enum ReadRow<T> {
    There(T),
    Gone,
    /// Something is there, and nothing may be concluded about it.
    Unreadable,
}

impl<T> ReadRow<T> {
    pub(crate) fn there(self) -> Option<T> {
        match self {
            Self::There(found) => Some(found),
            Self::Gone | Self::Unreadable => None,
        }
    }

    /// Of what nobody can read, everything may be true.
    pub(crate) fn may_be(&self, so: impl FnOnce(&T) -> bool) -> bool {
        match self {
            Self::There(found) => so(found),
            Self::Gone => false,
            Self::Unreadable => true,
        }
    }

    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
    }
}

impl<T> From<Option<T>> for ReadRow<T> {
    fn from(found: Option<T>) -> Self {
        found.map_or(Self::Gone, Self::There)
    }
}

/// What this process met.
#[derive(Default)]
pub(crate) struct UnreadableMet {
    /// Asked for by name.
    named: Unreadable,
    /// How many of those that the Store left out are in the metric.
    counted: AtomicU64,
    /// Not taken by the Store.
    refused: Unreadable,
    pub(crate) jobs: Resting<JobId>,
    pub(crate) runs: Resting<RunId>,
}

/// What the Store did not take a moment ago, and when.
pub(crate) struct Resting<K>(Mutex<BTreeMap<K, Instant>>);

impl<K> Default for Resting<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord + Clone> Resting<K> {
    pub(crate) fn has(&self, row: &K) -> bool {
        self.0.lock().get(row).is_some_and(|since| since.elapsed() < RESTS_FOR)
    }

    fn add(&self, row: &K) {
        let mut resting = self.0.lock();
        resting.retain(|_, since| since.elapsed() < RESTS_FOR);
        if resting.len() < RESTING_MAX {
            resting.insert(row.clone(), Instant::now());
        }
    }
}

impl Inner {
    /// Jobs by id, in the order asked, however many of them cannot be decoded.
    pub(crate) async fn load_each(&self, ids: &[JobId]) -> Result<Vec<ReadRow<Job>>, StoreError> {
        match self.ports.store.load(ids).await {
            Ok(jobs) => return Ok(jobs.into_iter().map(ReadRow::from).collect()),
            Err(StoreError::Corrupt(_)) => {}
            Err(error) => return Err(error),
        }
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            let one = self.ports.store.load(std::slice::from_ref(id)).await.map(|mut one| one.pop().flatten());
            found.push(self.or_unreadable(|| format!("job {id}"), one)?);
        }
        Ok(found)
    }

    /// Runs by id, in the order asked, however many of them cannot be decoded.
    pub(crate) async fn load_each_run(&self, ids: &[RunId]) -> Result<Vec<ReadRow<Run>>, StoreError> {
        match self.ports.store.load_runs(ids).await {
            Ok(runs) => return Ok(runs.into_iter().map(ReadRow::from).collect()),
            Err(StoreError::Corrupt(_)) => {}
            Err(error) => return Err(error),
        }
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            let one = self.ports.store.load_runs(std::slice::from_ref(id)).await.map(|mut one| one.pop().flatten());
            found.push(self.or_unreadable(|| format!("run {id}"), one)?);
        }
        Ok(found)
    }

    fn or_unreadable<T>(
        &self,
        name: impl FnOnce() -> String,
        one: Result<Option<T>, StoreError>,
    ) -> Result<ReadRow<T>, StoreError> {
        match one {
            Ok(found) => Ok(ReadRow::from(found)),
            Err(StoreError::Corrupt(why)) => {
                self.cannot_read(&name(), &why);
                Ok(ReadRow::Unreadable)
            }
            Err(error) => Err(error),
        }
    }

    /// What the caller is told who named a row that could not be read. What exactly is wrong with it may quote the row, which
    /// may be another tenant's: that is in health and in the log.
    pub(crate) fn unread(&self, row: impl FnOnce() -> String, error: StoreError) -> ApiError {
        let StoreError::Corrupt(why) = error else { return error.into() };
        let row = row();
        self.cannot_read(&row, &why);
        ApiError::Damaged { row, why: "`lockgate health` says what is wrong with it".into() }
    }

    pub(crate) fn cannot_read(&self, row: &str, why: &str) {
        self.damage.named.tell(row, &why);
        self.metrics.unreadable(1);
        self.health.damaged(&format!("{row}: {why}"));
    }

    /// A change of a job did not go through. If its row is at fault, that is told: deciding again would change nothing.
    pub(crate) fn not_changed(&self, id: &JobId, error: &ChangeError) {
        if let ChangeError::Refused(why) = error {
            self.damage.jobs.add(id);
            self.cannot_write(&format!("job {id}"), why);
        }
    }

    /// The same of a step of a run. One that lost against another is called again; the others wait for their next call.
    pub(crate) fn not_stepped(&self, run: &RunId, refusal: &RunRefusal) {
        match refusal {
            RunRefusal::Conflict => self.run_queue.wake([run.clone()]),
            RunRefusal::Refused(why) => {
                self.damage.runs.add(run);
                self.cannot_write(&format!("run {run}"), why);
            }
            RunRefusal::Taken { .. } => {}
        }
    }

    pub(crate) fn cannot_write(&self, row: &str, why: &str) {
        if self.damage.refused.meet(row, &why) {
            tracing::error!(
                row,
                why,
                "the Store refused a row and left it unchanged; other rows continue. Is there a trigger or a constraint \
                 on its table that is not Lockgate's, or a value that the database cannot hold?"
            );
        }
        self.metrics.refused_row();
        self.health.refused(&format!("{row}: {why}"));
    }

    /// Tells of what the Store had to leave out since this was last asked.
    pub(crate) fn look_for_damage(&self) {
        let Met { rows, latest } = self.ports.store.unreadable();
        let before = self.damage.counted.swap(rows, Ordering::Relaxed);
        if let Some(latest) = latest.filter(|_| rows > before) {
            self.metrics.unreadable(rows - before);
            self.health.damaged(&latest);
        }
    }
}
