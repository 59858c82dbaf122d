//! Rows that nobody here can decode. Those of a page are left out by the Store; those that are asked for by name are asked for one
//! by one, so that none of them stops its neighbours.

use std::sync::atomic::{AtomicU64, Ordering};

use lockgate_core::dag::Run;
use lockgate_core::ids::{JobId, RunId};
use lockgate_core::job::Job;
use lockgate_ports::{Met, StoreError, Unreadable};

use crate::Inner;

/// What is there under a name.
pub(crate) enum Found<T> {
    There(T),
    Gone,
    /// Something is there, and nothing may be concluded about it.
    Unreadable,
}

impl<T> Found<T> {
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

impl<T> From<Option<T>> for Found<T> {
    fn from(found: Option<T>) -> Self {
        found.map_or(Self::Gone, Self::There)
    }
}

/// What this process met.
#[derive(Default)]
pub(crate) struct Damage {
    /// Asked for by name.
    named: Unreadable,
    /// How many of those that the Store left out are in the metric.
    counted: AtomicU64,
}

impl Inner {
    /// Jobs by id, in the order asked, however many of them cannot be decoded.
    pub(crate) async fn load_each(&self, ids: &[JobId]) -> Result<Vec<Found<Job>>, StoreError> {
        match self.ports.store.load(ids).await {
            Ok(jobs) => return Ok(jobs.into_iter().map(Found::from).collect()),
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
    pub(crate) async fn load_each_run(&self, ids: &[RunId]) -> Result<Vec<Found<Run>>, StoreError> {
        match self.ports.store.load_runs(ids).await {
            Ok(runs) => return Ok(runs.into_iter().map(Found::from).collect()),
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
    ) -> Result<Found<T>, StoreError> {
        match one {
            Ok(found) => Ok(Found::from(found)),
            Err(StoreError::Corrupt(why)) => {
                self.cannot_read(&name(), &why);
                Ok(Found::Unreadable)
            }
            Err(error) => Err(error),
        }
    }

    fn cannot_read(&self, row: &str, why: &str) {
        self.damage.named.tell(row, &why);
        self.metrics.unreadable(1);
        self.health.damaged(&format!("{row}: {why}"));
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
