//! One worker as placement sees it: what it is, what it holds, how it fares.

use std::sync::Arc;

use crate::pools::Overload;
use crate::worker::{Load, WorkerProfile};

/// Scores count hundredths, so that a percent of load is one and no fraction is lost.
pub(super) const SCORE_OF_A_JOB: u64 = 100;

/// What is known of one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub profile: Arc<WorkerProfile>,
    /// Jobs it runs at once.
    pub capacity: u32,
    /// Jobs it may hold besides, waiting. Given only when nobody has a free slot.
    pub spare: u32,
    /// Jobs it holds, those on their way to it included: a burst between two beats must not pile up on one worker.
    pub active: u32,
    /// From its latest beat.
    pub load: Load,
    pub away: Option<Unavailable>,
}

impl Candidate {
    /// Whether nothing has changed that places depend on. What a worker is does not change while it is attached.
    pub fn same_room(&self, other: &Self) -> bool {
        let room = |it: &Self| (it.capacity, it.spare, it.active, it.load, it.away);
        room(self) == room(other)
    }
}

/// Why a worker gets nothing, whatever it could take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Unavailable {
    /// It is attached to another process, which gives it jobs and says how it fares. Jobs that it should have are left to it.
    #[error("elsewhere")]
    Elsewhere,
    /// It is attached to another process, and that process has not said lately how it fares. Nothing is left to it.
    #[error("elsewhere")]
    Unheard,
    /// Its stream is down, and it may come back.
    #[error("detached")]
    Detached,
    /// It finishes what it holds and leaves.
    #[error("draining")]
    Draining,
}

/// What a worker is overloaded by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Measure {
    #[error("active")]
    Active,
    #[error("cpu")]
    Cpu,
    #[error("gpu")]
    Gpu,
}

/// Why a worker takes nothing now. It passes, sooner for the smaller ones. The texts are reason codes.
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
    /// The load in hundredths of a job: jobs held, and cpu and gpu as one job each when they are fully used.
    pub fn score(&self) -> u64 {
        let percent = |measured: Option<u32>| u64::from(measured.unwrap_or(0));
        u64::from(self.active) * SCORE_OF_A_JOB + percent(self.load.cpu) + percent(self.load.gpu)
    }

    /// Whether it takes a job now. The first check that fails names the reason. Of a worker at another process, its load says more
    /// than where it is.
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

    /// The first of the limits that it is at or above.
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

    /// Whether it works, for whichever process.
    pub(super) fn is_here(&self) -> bool {
        matches!(self.away, None | Some(Unavailable::Elsewhere | Unavailable::Unheard))
    }

    /// Whether another process gives it jobs.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.away == Some(Unavailable::Elsewhere)
    }

    /// Slots that are free, by what was last heard of it, whichever process gives it jobs.
    pub(super) fn free(&self, overload: &Overload) -> u32 {
        if !self.is_here() || self.check_load(overload).is_err() {
            return 0;
        }
        let limit = if overload.claims_last { self.capacity } else { self.limit(overload).min(self.capacity) };
        limit.saturating_sub(self.active)
    }

    /// Whether it may hold another job at all, from whichever process: one that finds no slot free can still wait with it.
    pub(super) fn may_hold(&self, overload: &Overload) -> bool {
        let reachable = matches!(self.away, None | Some(Unavailable::Elsewhere));
        let fit = matches!(self.check_load(overload), Ok(()) | Err(Unready::Busy));
        reachable && fit && self.active < self.limit(overload)
    }

    /// Jobs it may hold before it counts as overloaded by them, or busy. One that is over a limit and claims last has no jobs
    /// wait with it.
    pub(super) fn limit(&self, overload: &Overload) -> u32 {
        if overload.claims_last && self.over(overload).is_some() {
            return self.capacity;
        }
        let places = self.places();
        overload.active_percent.map_or(places, |percent| share(self.capacity, percent).min(places))
    }

    /// Jobs it may hold.
    pub fn places(&self) -> u32 {
        self.capacity.saturating_add(self.spare)
    }
}

/// The least number of jobs that is `percent` of the capacity or more.
fn share(capacity: u32, percent: u32) -> u32 {
    u32::try_from((u64::from(capacity) * u64::from(percent)).div_ceil(100)).unwrap_or(u32::MAX)
}
