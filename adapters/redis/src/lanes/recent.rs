//! Jobs that this process offered lately, so that a claim here need not read them from the Store.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use lockgate_core::job::Job;
use lockgate_core::lane::ReadyKey;

/// The memory of a job besides its payload, rounded up generously.
const JOB_BYTES: usize = 1024;

#[derive(Clone, Copy, Debug)]
pub(super) struct RecentBounds {
    pub(super) jobs: usize,
    pub(super) bytes: usize,
}

impl Default for RecentBounds {
    fn default() -> Self {
        Self { jobs: 16_384, bytes: 32 * 1024 * 1024 }
    }
}

#[derive(Debug, Default)]
pub(super) struct Recent {
    bounds: RecentBounds,
    /// Looked up and never iterated.
    jobs: HashMap<ReadyKey, Arc<Job>>,
    /// Oldest first; some were taken already.
    order: VecDeque<ReadyKey>,
    bytes: usize,
}

impl Recent {
    /// Keeps the newest version of a job.
    pub(super) fn keep(&mut self, job: &Arc<Job>) {
        let key = job.ready_key();
        match self.jobs.get_mut(&key) {
            Some(known) if known.version >= job.version => return,
            Some(known) => {
                self.bytes = self.bytes - weight(known) + weight(job);
                *known = job.clone();
            }
            None => {
                self.bytes += weight(job);
                self.jobs.insert(key, job.clone());
                self.order.push_back(key);
            }
        }
        let RecentBounds { jobs, bytes } = self.bounds;
        while self.order.len() > jobs || self.bytes > bytes {
            let Some(oldest) = self.order.pop_front() else { break };
            self.take(oldest);
        }
    }

    pub(super) fn take(&mut self, key: ReadyKey) -> Option<Arc<Job>> {
        let job = self.jobs.remove(&key)?;
        self.bytes -= weight(&job);
        Some(job)
    }
}

fn weight(job: &Job) -> usize {
    JOB_BYTES + job.request.payload.as_str().len()
}

#[cfg(test)]
mod tests {
    use lockgate_conformance::lanes::stage::{Spec, job};

    use super::*;

    fn kept(count: i64, bounds: RecentBounds) -> Recent {
        let mut recent = Recent { bounds, ..Recent::default() };
        (0..count).for_each(|seq| recent.keep(&Arc::new(job(&Spec::default(), seq))));
        recent
    }

    #[test]
    fn the_oldest_jobs_are_dropped_first_by_number_and_by_weight() {
        for bounds in [RecentBounds { jobs: 3, bytes: usize::MAX }, RecentBounds { jobs: 99, bytes: 3 * (JOB_BYTES + 4) }] {
            let mut recent = kept(9, bounds);
            let has = |recent: &mut Recent, seq| recent.take(job(&Spec::default(), seq).ready_key()).is_some();
            assert!(!has(&mut recent, 5), "{bounds:?}");
            assert!((6..9).all(|seq| has(&mut recent, seq)), "{bounds:?}");
            assert_eq!(recent.bytes, 0);
        }
    }

    #[test]
    fn an_older_version_does_not_replace_a_newer_one() {
        let mut recent = kept(1, RecentBounds::default());
        let older = job(&Spec::default(), 0);
        let newer = Job { version: older.version + 1, ..older.clone() };
        recent.keep(&Arc::new(newer.clone()));
        recent.keep(&Arc::new(older));
        assert_eq!(recent.take(newer.ready_key()).map(|job| job.version), Some(newer.version));
    }
}
