//! One worker as placement sees it: its profile, the jobs it holds, and its load.

use std::sync::Arc;

use crate::pools::Overload;
use crate::worker::{Load, WorkerProfile};

/// Scores count hundredths of a job, so that one percent of load counts 1 and integers suffice.
pub(super) const SCORE_OF_A_JOB: u64 = 100;

/// A worker that jobs may be placed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub profile: Arc<WorkerProfile>,
    /// Worker slots: jobs that it runs at once.
    pub capacity: u32,
    /// Jobs that it may hold besides, waiting in the worker. Used only when no worker has a free slot.
    pub spare: u32,
    /// Jobs that it holds, including assignments on their way: otherwise a burst between two beats would pile up on one
    /// worker.
    pub active: u32,
    /// The load from its latest beat.
    pub load: Load,
    pub away: Option<Unavailable>,
}

impl Candidate {
    /// Whether two states of one worker are equal for placement. The profile does not change while the worker is attached.
    pub fn same_room(&self, other: &Self) -> bool {
        let room = |it: &Self| (it.capacity, it.spare, it.active, it.load, it.away);
        room(self) == room(other)
    }
}

/// Why a worker takes no job, whichever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Unavailable {
    /// Attached to another process, which dispatches to it and reports its load. Jobs for which it is the best worker are
    /// left to that process.
    #[error("elsewhere")]
    Elsewhere,
    /// Attached to another process, which has not reported its load lately. No job is left to it.
    #[error("elsewhere")]
    Unheard,
    /// Its stream is down, and it may reconnect.
    #[error("detached")]
    Detached,
    /// It finishes the jobs that it holds and gets no new ones.
    #[error("draining")]
    Draining,
}

/// The measure by which a worker is overloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Measure {
    #[error("active")]
    Active,
    #[error("cpu")]
    Cpu,
    #[error("gpu")]
    Gpu,
}

/// Why a worker takes no job now, although it may later; smaller reasons pass sooner. The texts are reason codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Unready {
    #[error("busy")]
    Busy,
    #[error("overloaded:{0}")]
    Overloaded(Measure),
    #[error(transparent)]
    Away(Unavailable),
}

impl Candidate {
    /// The load in hundredths of a job: the jobs held, and a fully used CPU and GPU as one job each.
    pub fn score(&self) -> u64 {
        let percent = |measured: Option<u32>| u64::from(measured.unwrap_or(0));
        u64::from(self.active) * SCORE_OF_A_JOB + percent(self.load.cpu) + percent(self.load.gpu)
    }

    /// Whether the worker takes a job now; the first failed check is the reason. Load is checked before `Elsewhere`, because
    /// it tells a person more.
    pub fn check(&self, overload: &Overload) -> Result<(), Unready> {
        match self.away {
            None => self.check_load(overload),
            Some(away @ (Unavailable::Elsewhere | Unavailable::Unheard)) => {
                self.check_load(overload).and(Err(Unready::Away(away)))
            }
            Some(away) => Err(Unready::Away(away)),
        }
    }

    fn check_load(&self, overload: &Overload) -> Result<(), Unready> {
        match self.over(overload) {
            Some(measure) if !overload.claims_last => Err(Unready::Overloaded(measure)),
            _ if self.active >= self.capacity => Err(Unready::Busy),
            _ => Ok(()),
        }
    }

    /// The first overload limit that the worker has reached.
    pub(super) fn over(&self, overload: &Overload) -> Option<Measure> {
        if overload.active_percent.is_some_and(|percent| self.active >= share(self.capacity, percent)) {
            return Some(Measure::Active);
        }
        let measures =
            [(self.load.cpu, overload.cpu_percent, Measure::Cpu), (self.load.gpu, overload.gpu_percent, Measure::Gpu)];
        let over = |(measured, percent, _): &(Option<u32>, Option<u32>, Measure)| {
            measured.zip(*percent).is_some_and(|(measured, percent)| measured >= percent)
        };
        measures.into_iter().find(over).map(|(_, _, measure)| measure)
    }

    /// Whether the worker is attached, to this or another process.
    pub(super) fn is_here(&self) -> bool {
        matches!(self.away, None | Some(Unavailable::Elsewhere | Unavailable::Unheard))
    }

    /// Whether another process dispatches to the worker.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.away == Some(Unavailable::Elsewhere)
    }

    /// Free slots by its latest report, whichever process dispatches to it.
    pub(super) fn free(&self, overload: &Overload) -> u32 {
        if !self.is_here() || self.check_load(overload).is_err() {
            return 0;
        }
        let limit = if overload.claims_last { self.capacity } else { self.limit(overload).min(self.capacity) };
        limit.saturating_sub(self.active)
    }

    /// Whether it may hold another job at all, from whichever process: without a free slot a job can still wait in the
    /// worker.
    pub(super) fn may_hold(&self, overload: &Overload) -> bool {
        let reachable = matches!(self.away, None | Some(Unavailable::Elsewhere));
        let fit = matches!(self.check_load(overload), Ok(()) | Err(Unready::Busy));
        reachable && fit && self.active < self.limit(overload)
    }

    /// Jobs that the worker may hold before it counts as overloaded or busy. No job waits in a worker that is over a limit
    /// and claims last.
    pub(super) fn limit(&self, overload: &Overload) -> u32 {
        if overload.claims_last && self.over(overload).is_some() {
            return self.capacity;
        }
        let places = self.places();
        overload.active_percent.map_or(places, |percent| share(self.capacity, percent).min(places))
    }

    /// Jobs that the worker may hold, running and waiting.
    pub fn places(&self) -> u32 {
        self.capacity.saturating_add(self.spare)
    }
}

/// The smallest number of jobs that is at least `percent` of the capacity.
fn share(capacity: u32, percent: u32) -> u32 {
    u32::try_from((u64::from(capacity) * u64::from(percent)).div_ceil(100)).unwrap_or(u32::MAX)
}
