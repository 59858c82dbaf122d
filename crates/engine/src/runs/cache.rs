//! What is remembered of runs and definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lockgate_core::dag::plan::RunPlanner;
use lockgate_core::dag::saga::Saga;
use lockgate_core::dag::{AnyRun, Dag, DagRef, Run, Unmoved};
use lockgate_core::ids::{RunId, TenantId};
use lockgate_ports::{DagRow, StoreError};
use parking_lot::Mutex;

use super::orphans::Unmoving;
use crate::Inner;
use crate::damage::ReadRow;

/// Rows of nodes in memory, of all runs together. Without the outputs that some of them keep, some hundred bytes each.
const ROWS_MAX: usize = 200_000;
const DAGS_MAX: usize = 256;

/// Which version of whose DAG.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DagKey {
    pub(crate) tenant: TenantId,
    pub(crate) name: Arc<str>,
    pub(crate) version: u32,
}

impl DagKey {
    pub(crate) fn of(tenant: &TenantId, dag: &DagRef) -> Self {
        Self { tenant: tenant.clone(), name: dag.name.clone(), version: dag.version }
    }
}

/// A stored definition, read.
#[derive(Clone)]
pub(crate) struct CachedDag {
    pub(crate) dag: Arc<Dag>,
    pub(crate) row: Arc<DagRow>,
}

#[derive(Default)]
pub(super) struct RunCache {
    runs: Mutex<CachedRuns>,
    dags: Mutex<BTreeMap<DagKey, CachedDag>>,
    pub(super) unmoving: Unmoving,
}

#[derive(Default)]
struct CachedRuns {
    by_id: BTreeMap<RunId, AnyRun>,
    rows: usize,
}

impl CachedRuns {
    fn take(&mut self, id: &RunId) -> Option<AnyRun> {
        let live = self.by_id.remove(id)?;
        self.rows -= rows(&live);
        Some(live)
    }

    /// Whoever remembers an earlier version of the run does not know better.
    fn keep(&mut self, live: AnyRun) {
        let head = &live.run().head;
        if self.by_id.get(&head.id).is_some_and(|known| known.run().head.version > head.version) {
            return;
        }
        self.take(&live.run().head.id.clone());
        // A workflow of plain jobs that is quiet would only take the place of runs that go on: its ids sort after all others.
        if live.run().head.id.is_saga() && live.run().head.wakes_at.is_some() {
            return;
        }
        self.rows += rows(&live);
        self.by_id.insert(live.run().head.id.clone(), live);
        // Ids sort by age. A run that is forgotten is read again when it has news.
        while self.rows > ROWS_MAX
            && let Some(oldest) = self.by_id.keys().next().cloned()
        {
            self.take(&oldest);
        }
    }
}

fn rows(live: &AnyRun) -> usize {
    live.run().nodes.len() + 1
}

/// What became of runs that were asked for.
#[derive(Default)]
pub(super) struct ReadRuns {
    pub(super) lives: Vec<AnyRun>,
    /// Their definition is not there, or cannot be read.
    pub(super) planless: Vec<(Run, Unmoved)>,
    /// Those, and what nobody here can read: another version of Lockgate may be able to.
    pub(super) unmoved: BTreeSet<RunId>,
}

/// A run with its definition.
pub(super) enum Defined {
    Flow(AnyRun),
    /// Neither news nor time nor people move it.
    Planless(Box<Run>, Unmoved),
}

impl Inner {
    /// These runs as they were last seen, by id; those that are gone are left out. Apart from them, those that cannot be read.
    pub(super) async fn remembered(&self, ids: &[RunId]) -> Result<(Vec<AnyRun>, BTreeSet<RunId>), StoreError> {
        let (mut lives, unknown) = {
            let mut runs = self.run_queue.cache.runs.lock();
            let mut lives = Vec::with_capacity(ids.len());
            let mut unknown = Vec::new();
            for id in ids {
                match runs.take(id) {
                    Some(live) => lives.push(live),
                    None => unknown.push(id.clone()),
                }
            }
            (lives, unknown)
        };
        if unknown.is_empty() {
            return Ok((lives, BTreeSet::new()));
        }
        let read = self.readable_runs(&unknown).await?;
        lives.extend(read.lives);
        Ok((lives, read.unmoved))
    }

    /// These runs as they are.
    pub(super) async fn read_runs(&self, ids: &[RunId]) -> Result<Vec<AnyRun>, StoreError> {
        let mut lives = Vec::with_capacity(ids.len());
        for run in self.ports.store.load_runs(ids).await?.into_iter().flatten() {
            if let Defined::Flow(live) = self.defined(run).await? {
                lives.push(live);
            }
        }
        Ok(lives)
    }

    /// The same, with those apart that cannot be read: one of them must not stand in the way of the others.
    pub(super) async fn readable_runs(&self, ids: &[RunId]) -> Result<ReadRuns, StoreError> {
        let mut read = ReadRuns::default();
        for (id, found) in ids.iter().zip(self.load_each_run(ids).await?) {
            match found {
                ReadRow::There(run) => match self.defined(run).await? {
                    Defined::Flow(live) => read.lives.push(live),
                    Defined::Planless(run, why) => {
                        read.unmoved.insert(id.clone());
                        read.planless.push((*run, why));
                    }
                },
                ReadRow::Gone => {}
                ReadRow::Unreadable => {
                    read.unmoved.insert(id.clone());
                }
            }
        }
        Ok(read)
    }

    pub(super) async fn defined(&self, run: Run) -> Result<Defined, StoreError> {
        if run.head.id.is_saga() {
            return Ok(Defined::Flow(Saga::new(run).into()));
        }
        match self.definition(&DagKey::of(&run.head.tenant, &run.head.dag)).await {
            Ok(Some(known)) => Ok(Defined::Flow(RunPlanner::new(known.dag, run).into())),
            Ok(None) => {
                tracing::error!(run_id = %run.head.id, dag = %run.head.dag.name, "run blocked: its DAG definition is missing");
                Ok(Defined::Planless(Box::new(run), Unmoved::NoPlan))
            }
            Err(StoreError::Corrupt(error)) => {
                tracing::error!(run_id = %run.head.id, error, "run blocked: it cannot be decoded");
                let dag = &run.head.dag;
                self.cannot_read(&format!("version {} of DAG {:?}", dag.version, dag.name), &error);
                Ok(Defined::Planless(Box::new(run), Unmoved::PlanUnreadable))
            }
            Err(error) => Err(error),
        }
    }

    /// A run that is over is only read again if something is heard of it.
    pub(super) fn remember(&self, live: AnyRun) {
        let head = &live.run().head;
        if self.run_queue.steps && !head.state.is_over() {
            // A time that has come already brought nothing: the tick looks again.
            if let Some(at) = head.wakes_at.filter(|at| *at > self.ports.clock.now()) {
                self.run_queue.wake_at(at, head.id.clone());
            }
            self.run_queue.cache.runs.lock().keep(live);
        }
    }

    /// These runs changed, or should have: what is remembered of them may be old.
    pub(crate) fn forget(&self, ids: &[RunId]) {
        let mut runs = self.run_queue.cache.runs.lock();
        for id in ids {
            runs.take(id);
        }
    }

    /// One version of a DAG, read once.
    pub(crate) async fn definition(&self, key: &DagKey) -> Result<Option<CachedDag>, StoreError> {
        if let Some(known) = self.run_queue.cache.dags.lock().get(key) {
            return Ok(Some(known.clone()));
        }
        let Some(row) = self.ports.store.dag(&key.tenant, &key.name, Some(key.version)).await? else { return Ok(None) };
        self.learn(row).map(Some)
    }

    /// What a stored row says, if it was not read before.
    pub(crate) fn learn(&self, row: DagRow) -> Result<CachedDag, StoreError> {
        let key = DagKey { tenant: row.tenant.clone(), name: row.name.clone(), version: row.version };
        // A tenant that was erased begins anew with its first version.
        if let Some(known) = self.run_queue.cache.dags.lock().get(&key).filter(|known| known.row.text == row.text) {
            return Ok(known.clone());
        }
        let dag = Dag::load_stored(&row.name, &row.text).map_err(|errors| {
            let error = errors.first().map_or_else(String::new, ToString::to_string);
            StoreError::Corrupt(format!("version {} of DAG {:?} cannot be read: {error}", row.version, row.name))
        })?;
        let known = CachedDag { dag: Arc::new(dag), row: Arc::new(row) };
        let mut dags = self.run_queue.cache.dags.lock();
        if dags.len() >= DAGS_MAX {
            dags.pop_first();
        }
        dags.insert(key, known.clone());
        Ok(known)
    }
}
