//! The part of one lane's backlog that is in memory.
//!
//! L-1: a job that was offered after its commit is in the window, claimed, or behind the frontier, where a refill finds it.
//! Three races must not break this:
//! - An offer behind the frontier while a refill reads the Store: the read may have missed it, so arrivals are kept until
//!   the answer comes, or the frontier stops before the smallest one that was not kept.
//! - A full window drops its last job while a refill reads: the frontier moved back, so the answer is ignored.
//! - A late answer to a repeated request: its ticket is old, so it is ignored.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_core::ids::JobId;
use lockgate_core::job::Job;
use lockgate_core::lane::ReadyKey;

use super::bounds::{WindowRoom, WindowTotals, weight};

#[derive(Debug, Default)]
pub(super) struct LaneWindow {
    waiting: BTreeMap<ReadyKey, WaitingJob>,
    /// With the numbers of their claims.
    claimed: BTreeMap<ReadyKey, u64>,
    bytes: usize,
    /// None: every waiting job is in memory.
    frontier: Option<Frontier>,
    /// The recent size of this lane's larger jobs, which determines the size of the next page.
    typical: Option<usize>,
}

#[derive(Clone, Debug)]
enum WaitingJob {
    Job(Arc<Job>),
    Id(JobId),
}

/// The Store has jobs after `after` that are not in memory.
#[derive(Debug, Default)]
struct Frontier {
    after: Option<ReadyKey>,
    /// How many; an estimate between rebuilds, exact again when the end is reached.
    beyond: u64,
    ask: Option<Ask>,
}

/// A refill that is reading the Store.
#[derive(Debug)]
struct Ask {
    ticket: u64,
    /// Jobs offered since the refill began, which its read may have missed.
    arrivals: BTreeMap<ReadyKey, Arc<Job>>,
    bytes: usize,
    /// The smallest arrival for which there was no room.
    missed: Option<ReadyKey>,
}

/// A job taken out of its window.
pub(super) struct TakenJob {
    pub(super) key: ReadyKey,
    pub(super) job_id: JobId,
    pub(super) job: Option<Arc<Job>>,
}

impl LaneWindow {
    /// Adds a job that waits in the Store. A job known already stays where it is.
    pub(super) fn offer(&mut self, job: Arc<Job>, room: WindowRoom) {
        self.place(job.ready_key(), job, room);
    }

    fn place(&mut self, key: ReadyKey, job: Arc<Job>, room: WindowRoom) {
        if self.claimed.contains_key(&key) || self.refresh(key, &job) {
            return;
        }
        match &mut self.frontier {
            Some(frontier) if Some(key) > frontier.after => {
                let in_memory = WindowTotals { jobs: self.waiting.len(), bytes: self.bytes };
                frontier.arrive(key, job, in_memory, room);
            }
            _ => {
                self.insert(key, job, room);
                self.trim(room);
            }
        }
    }

    /// A claim was undone: the job waits again.
    pub(super) fn give_back(&mut self, key: ReadyKey, job: Arc<Job>, room: WindowRoom) {
        self.claimed.remove(&key);
        self.place(key, job, room);
    }

    /// The job does not wait any more, wherever it was.
    pub(super) fn gone(&mut self, key: ReadyKey) {
        if self.claimed.remove(&key).is_some() {
            return;
        }
        if let Some(waiting) = self.waiting.remove(&key) {
            self.bytes -= waiting.bytes();
        } else if let Some(frontier) = self.frontier.as_mut().filter(|frontier| Some(key) > frontier.after) {
            frontier.beyond = frontier.beyond.saturating_sub(1);
            if let Some(ask) = &mut frontier.ask {
                ask.forget(key);
            }
        }
    }

    /// Claims the head. L-4: no other claim gets it until this one is settled.
    pub(super) fn take(&mut self, number: u64) -> Option<TakenJob> {
        let (key, waiting) = self.waiting.pop_first()?;
        self.bytes -= waiting.bytes();
        self.claimed.insert(key, number);
        Some(match waiting {
            WaitingJob::Job(job) => TakenJob { key, job_id: job.request.job_id.clone(), job: Some(job) },
            WaitingJob::Id(job_id) => TakenJob { key, job_id, job: None },
        })
    }

    pub(super) fn head(&self) -> Option<ReadyKey> {
        self.waiting.first_key_value().map(|(key, _)| *key)
    }

    /// Whether to ask the Store: it has more jobs, and less than half of the room is used.
    pub(super) fn is_hungry(&self, room: WindowRoom) -> bool {
        self.frontier.is_some() && self.waiting.len() * 2 <= room.jobs && self.bytes * 2 <= room.bytes
    }

    /// Opens or repeats a refill request: where to continue and how many rows to read.
    pub(super) fn ask(&mut self, ticket: u64, room: WindowRoom) -> Option<(Option<ReadyKey>, usize)> {
        // For an unknown lane a short page, because its jobs may have the largest possible size.
        let typical = self.typical.unwrap_or(room.bytes / 64).max(1);
        let fitting = (room.bytes.saturating_sub(self.bytes) / typical).max(1);
        let limit = room.jobs.saturating_sub(self.waiting.len()).max(1).min(fitting);
        let frontier = self.frontier.as_mut()?;
        match &mut frontier.ask {
            // Arrivals since the earlier request cover the later read too.
            Some(ask) => ask.ticket = ticket,
            None => frontier.ask = Some(Ask { ticket, arrivals: BTreeMap::new(), bytes: 0, missed: None }),
        }
        Some((frontier.after, limit))
    }

    /// Takes the Store's answer to the request with this ticket; ignores any other.
    pub(super) fn refill(&mut self, ticket: u64, limit: usize, jobs: Vec<Arc<Job>>, room: WindowRoom) {
        let Some(frontier) = self.frontier.as_mut() else { return };
        let Some(ask) = frontier.ask.take_if(|ask| ask.ticket == ticket) else { return };
        let last = jobs.last().map(|job| job.ready_key());
        let at_end = jobs.len() < limit;
        let known = |key: &ReadyKey| (at_end || Some(*key) <= last) && ask.missed.is_none_or(|missed| *key < missed);
        let mut fed: BTreeMap<ReadyKey, Arc<Job>> = jobs.into_iter().map(|job| (job.ready_key(), job)).collect();
        fed.extend(ask.arrivals);
        fed.retain(|key, _| known(key));
        if at_end && ask.missed.is_none() {
            self.frontier = None;
        } else {
            frontier.after = frontier.after.max(fed.last_key_value().map(|(key, _)| *key));
            frontier.beyond = frontier.beyond.saturating_sub(fed.len() as u64);
        }
        for (key, job) in fed {
            if !self.claimed.contains_key(&key) && !self.refresh(key, &job) {
                self.insert(key, job, room);
            }
        }
        self.trim(room);
    }

    /// Forgets everything: `count` jobs wait in the Store.
    pub(super) fn restart(&mut self, count: u64) {
        let typical = self.typical;
        *self = Self { frontier: Some(Frontier { after: None, beyond: count, ask: None }), typical, ..Self::default() };
    }

    /// Jobs that wait as the Store counts: claimed ones count until they are settled.
    pub(super) fn depth(&self) -> u64 {
        self.unclaimed() + self.claimed.len() as u64
    }

    /// Waiting jobs that are not claimed.
    pub(super) fn unclaimed(&self) -> u64 {
        self.waiting.len() as u64 + self.frontier.as_ref().map_or(0, |frontier| frontier.beyond)
    }

    /// Jobs that could be claimed now.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The number of the unsettled claim of a job, if there is one.
    pub(super) fn claim_of(&self, key: ReadyKey) -> Option<u64> {
        self.claimed.get(&key).copied()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.claimed.is_empty() && self.frontier.is_none()
    }

    pub(super) fn held(&self) -> WindowTotals {
        let arriving = self.frontier.as_ref().and_then(|frontier| frontier.ask.as_ref());
        let arriving =
            arriving.map_or_else(WindowTotals::default, |ask| WindowTotals { jobs: ask.arrivals.len(), bytes: ask.bytes });
        WindowTotals { jobs: self.waiting.len() + arriving.jobs, bytes: self.bytes + arriving.bytes }
    }

    /// Replaces a waiting job by a newer version of it. False if it does not wait here.
    fn refresh(&mut self, key: ReadyKey, job: &Arc<Job>) -> bool {
        match self.waiting.get_mut(&key) {
            Some(WaitingJob::Job(known)) => {
                if known.version < job.version {
                    *known = job.clone();
                }
                true
            }
            Some(WaitingJob::Id(_)) => true,
            None => false,
        }
    }

    fn insert(&mut self, key: ReadyKey, job: Arc<Job>, room: WindowRoom) {
        let before = self.typical.unwrap_or_default();
        self.typical = Some(weight(&job).max(before - before / 8));
        let waiting = if room.slim { WaitingJob::Id(job.request.job_id.clone()) } else { WaitingJob::Job(job) };
        self.bytes += waiting.bytes();
        self.waiting.insert(key, waiting);
    }

    /// Drops the last jobs until the rest fits. They are still in the Store, behind the frontier.
    fn trim(&mut self, room: WindowRoom) {
        let mut pushed_out = 0;
        while self.waiting.len() > 1 && (self.waiting.len() > room.jobs || self.bytes > room.bytes) {
            if let Some((_, waiting)) = self.waiting.pop_last() {
                self.bytes -= waiting.bytes();
                pushed_out += 1;
            }
        }
        if pushed_out > 0 {
            let frontier = self.frontier.get_or_insert_default();
            frontier.after = self.waiting.last_key_value().map(|(key, _)| *key);
            frontier.beyond += pushed_out;
            frontier.ask = None;
        }
    }
}

impl WaitingJob {
    fn bytes(&self) -> usize {
        match self {
            Self::Job(job) => weight(job),
            Self::Id(_) => 0,
        }
    }
}

impl Frontier {
    /// A job behind the frontier. The Store has it; it is kept only if a running refill may have missed it.
    fn arrive(&mut self, key: ReadyKey, job: Arc<Job>, in_memory: WindowTotals, room: WindowRoom) {
        let Some(ask) = &mut self.ask else {
            self.beyond += 1;
            return;
        };
        if ask.arrivals.contains_key(&key) {
            return;
        }
        self.beyond += 1;
        let fits = in_memory.jobs + ask.arrivals.len() < room.jobs && in_memory.bytes + ask.bytes < room.bytes;
        if fits && !room.slim {
            ask.bytes += weight(&job);
            ask.arrivals.insert(key, job);
        } else {
            ask.missed = Some(ask.missed.map_or(key, |missed| missed.min(key)));
        }
    }
}

impl Ask {
    fn forget(&mut self, key: ReadyKey) {
        if let Some(job) = self.arrivals.remove(&key) {
            self.bytes -= weight(&job);
        }
    }
}
