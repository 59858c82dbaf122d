mod bursts;
mod chain;
mod crowd;
mod memory;
mod model;
mod properties;
mod refusals;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Candidate, Roster};
use crate::lane::Shape;
use crate::pools::{Closed, PoolStates, Pools, Routing};
use crate::worker::{Load, WorkerProfile};

/// The pools of a file, some of them closed.
pub(super) fn routing(file: &str, closed: &[(&str, Closed)]) -> Arc<Routing> {
    let close = |states: PoolStates, (pool, closed): &(&str, Closed)| states.with((*pool).into(), Some(*closed));
    let pools = Pools::load("pools.yaml", file).unwrap_or_else(|errors| panic!("{errors:?}"));
    Arc::new(Routing::new(Arc::new(pools), closed.iter().fold(PoolStates::default(), close)))
}

pub(super) fn profile(worker: &str, pool: &str, topics: &[&str]) -> WorkerProfile {
    WorkerProfile {
        worker: worker.into(),
        pool: pool.into(),
        topics: topics.iter().map(|topic| Arc::from(*topic)).collect(),
        capabilities: BTreeSet::new(),
        labels: BTreeMap::new(),
        slots: 1,
        in_process: false,
        lost_after_ms: None,
        owner: None,
    }
}

pub(super) fn candidate(profile: WorkerProfile, capacity: u32) -> Candidate {
    Candidate { profile: Arc::new(profile), capacity, spare: 0, active: 0, load: Load::default(), away: None }
}

pub(super) fn names(items: &[&str]) -> BTreeSet<Arc<str>> {
    items.iter().map(|item| Arc::from(*item)).collect()
}

pub(super) fn labels(items: &[(&str, &str)]) -> BTreeMap<Arc<str>, Arc<str>> {
    items.iter().map(|(label, value)| (Arc::from(*label), Arc::from(*value))).collect()
}

/// A worker that serves everything in the pool.
pub(super) fn free(worker: &str, pool: &str, capacity: u32) -> Candidate {
    candidate(profile(worker, pool, &["*"]), capacity)
}

/// Plans and gives the jobs to the workers.
pub(super) fn place(roster: &mut Roster<u32>, shape: &Arc<Shape>, pool: &str, want: usize) -> Vec<(u32, u32)> {
    let places = roster.plan(shape, &pool.into(), want, false);
    for (key, jobs) in &places {
        roster.change(key, |candidate| candidate.active += jobs);
    }
    places
}
