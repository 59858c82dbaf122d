//! Explains to a person why a job waits: every pool and worker with its reason.

use std::collections::BTreeMap;

use super::Roster;
use super::candidate::{Candidate, Unavailable, Unready};
use super::gate::{PoolGate, gates};
use crate::ids::{PoolName, WorkerId};
use crate::lane::Shape;
use crate::pools::{Closed, DispatchMode, Pool, Unrouted};
use crate::worker::Unfit;

/// Workers of one pool that are listed; the others are counted by reason.
pub const WORKERS_SHOWN_MAX: usize = 100;

/// Why no worker takes a shape, in all its pools or in one. The texts are reason codes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Only for all pools together.
    #[error(transparent)]
    Unrouted(Unrouted),
    #[error("pool_paused")]
    PoolPaused,
    #[error("pool_draining")]
    PoolDraining,
    /// Only for one pool: it comes after a paused pool of the route.
    #[error("behind_paused_pool")]
    BehindPaused,
    /// No worker fits.
    #[error("no_workers")]
    NoWorkers,
    /// The workers that fit are detached or draining.
    #[error("workers_away")]
    WorkersAway,
    /// The workers that fit and are attached are overloaded.
    #[error("pool_overloaded")]
    PoolOverloaded,
    /// The workers that fit and are attached are busy or overloaded.
    #[error("workers_busy")]
    WorkersBusy,
}

/// Why a worker takes no job: the first check that failed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Obstacle {
    /// A temporary reason.
    #[error(transparent)]
    Unready(Unready),
    /// A reason that lasts as long as the worker.
    #[error(transparent)]
    Unfit(Unfit),
}

/// The pools and workers considered for a shape, with the reason why each refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// None if some worker will take a job of the shape in its turn.
    pub refusal: Option<Refusal>,
    /// In the order of the route.
    pub pools: Vec<PoolLook>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolLook {
    pub pool: PoolName,
    pub dispatch: DispatchMode,
    pub reason: Option<Refusal>,
    /// The workers closest to taking a job first, at most [`WORKERS_SHOWN_MAX`].
    pub workers: Vec<WorkerLook>,
    /// How many further workers there are, by reason.
    pub rest: BTreeMap<Option<Obstacle>, usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerLook {
    pub worker: WorkerId,
    /// Everything that it lacks to fit.
    pub lacks: Vec<Unfit>,
    /// Why it would take no job now even if it fitted.
    pub unready: Option<Unready>,
    pub active: u32,
    pub capacity: u32,
    /// The load in hundredths of a job.
    pub score: u64,
}

/// Counts the workers of a pool by their state.
#[derive(Clone, Copy, Debug, Default)]
struct WorkerTally {
    ready: usize,
    away: usize,
    overloaded: usize,
    busy: usize,
}

impl<K: Ord + Clone> Roster<K> {
    /// Checks every worker of the shape's pools. For people: [`Roster::plan`] decides for jobs, from the indexes.
    pub fn explain(&self, shape: &Shape) -> Placement {
        let route = match self.routing.pools.route(shape) {
            Ok(route) => route,
            Err(unrouted) => return Placement { refusal: Some(Refusal::Unrouted(unrouted)), pools: Vec::new() },
        };
        let mut pools = Vec::new();
        let mut closed = None;
        let mut open: Option<WorkerTally> = None;
        for (pool, gate) in gates(&self.routing, &route) {
            let (look, tally) = self.look_at(shape, pool, gate);
            if gate == PoolGate::Open {
                open = Some(open.unwrap_or_default().with(tally));
            } else if closed.is_none() || look.reason == Some(Refusal::PoolPaused) {
                closed.clone_from(&look.reason);
            }
            pools.push(look);
        }
        let refusal = match open.unwrap_or_default().refusal() {
            // No worker of the open pools fits, but the jobs can wait for the paused pool.
            Some(Refusal::NoWorkers) if open.is_none() || closed == Some(Refusal::PoolPaused) => {
                Some(closed.unwrap_or(Refusal::NoWorkers))
            }
            refusal => refusal,
        };
        Placement { refusal, pools }
    }

    fn look_at(&self, shape: &Shape, pool: &Pool, gate: PoolGate) -> (PoolLook, WorkerTally) {
        let slots = self.crews.get(&pool.name).into_iter().flat_map(|crew| crew.members());
        let workers = slots.filter_map(|slot| self.workers.get(slot));
        let mut looks: Vec<_> =
            workers.map(|worker| (WorkerLook::of(&worker.candidate, shape, pool), &worker.key)).collect();
        looks.sort_by(|(a, a_key), (b, b_key)| a.nearness().cmp(&b.nearness()).then_with(|| a_key.cmp(b_key)));
        let mut tally = WorkerTally::default();
        looks.iter().for_each(|(look, _)| tally.count(look));
        let mut workers: Vec<WorkerLook> = looks.into_iter().map(|(look, _)| look).collect();
        let mut rest = BTreeMap::new();
        for look in workers.drain(WORKERS_SHOWN_MAX.min(workers.len())..) {
            *rest.entry(look.reason()).or_default() += 1;
        }
        let reason = match gate {
            PoolGate::Open => tally.refusal(),
            PoolGate::Closed(Closed::Paused) => Some(Refusal::PoolPaused),
            PoolGate::Closed(Closed::Draining) => Some(Refusal::PoolDraining),
            PoolGate::Behind => Some(Refusal::BehindPaused),
        };
        (PoolLook { pool: pool.name.clone(), dispatch: pool.dispatch, reason, workers, rest }, tally)
    }
}

impl WorkerLook {
    fn of(candidate: &Candidate, shape: &Shape, pool: &Pool) -> Self {
        Self {
            worker: candidate.profile.worker.clone(),
            lacks: candidate.profile.lacks(shape, Some(pool)).collect(),
            unready: candidate.check(&pool.overload).err(),
            active: candidate.active,
            capacity: candidate.capacity,
            score: candidate.score(),
        }
    }

    /// The first check that failed.
    pub fn reason(&self) -> Option<Obstacle> {
        let unfit = self.lacks.first().cloned().map(Obstacle::Unfit);
        unfit.or_else(|| self.unready.map(Obstacle::Unready))
    }

    /// The order of display: the worker that lacks least comes first.
    fn nearness(&self) -> (usize, Option<Unready>, u64) {
        (self.lacks.len(), self.unready, self.score)
    }
}

impl WorkerTally {
    fn count(&mut self, look: &WorkerLook) {
        match look.unready {
            _ if !look.lacks.is_empty() => {}
            None => self.ready += 1,
            // The process that it is attached to would have claimed the job if the worker were free.
            Some(Unready::Away(Unavailable::Elsewhere | Unavailable::Unheard)) => self.busy += 1,
            Some(Unready::Away(_)) => self.away += 1,
            Some(Unready::Overloaded(_)) => self.overloaded += 1,
            Some(Unready::Busy) => self.busy += 1,
        }
    }

    fn with(self, other: Self) -> Self {
        Self {
            ready: self.ready + other.ready,
            away: self.away + other.away,
            overloaded: self.overloaded + other.overloaded,
            busy: self.busy + other.busy,
        }
    }

    fn refusal(self) -> Option<Refusal> {
        match self {
            Self { ready: 1.., .. } => None,
            Self { busy: 1.., .. } => Some(Refusal::WorkersBusy),
            Self { overloaded: 1.., .. } => Some(Refusal::PoolOverloaded),
            Self { away: 1.., .. } => Some(Refusal::WorkersAway),
            _ => Some(Refusal::NoWorkers),
        }
    }
}
