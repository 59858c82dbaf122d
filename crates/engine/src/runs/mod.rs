//! Steps of runs: news in, jobs out, one commit.
//!
//! Nobody owns a run. The process that leads takes the steps and remembers the runs it stepped, so that a step costs what it
//! touches and not what the run has; the run's version says whether what is remembered still holds.

mod advance;
mod cache;
mod children;
mod memos;
mod order;
mod orphans;
mod stamps;
mod step;
mod sweep;

use std::collections::BTreeSet;

use lockgate_core::ids::RunId;
use lockgate_core::time::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;

pub(crate) use advance::Planned;
pub(crate) use cache::{CachedDag, DagKey};

/// Times that are kept, the soonest ones. The tick finds the others, up to a second late.
const WAKES_MAX: usize = 10_000;

/// Runs that wait for a step, and runs that are remembered.
pub(crate) struct RunQueue {
    /// Whether this process takes steps. One that does not has nothing to remember and nothing to call.
    steps: bool,
    waiting: Mutex<BTreeSet<RunId>>,
    woken: Notify,
    /// When remembered runs have to be looked at although nothing happened. Others are found by the tick.
    wakes: Mutex<BTreeSet<(Timestamp, RunId)>>,
    cache: cache::RunCache,
}

impl RunQueue {
    pub(crate) fn new(steps: bool) -> Self {
        Self {
            steps,
            waiting: Mutex::default(),
            woken: Notify::new(),
            wakes: Mutex::default(),
            cache: cache::RunCache::default(),
        }
    }

    /// These runs have something to hear. Said twice, it is one step.
    pub(crate) fn wake(&self, runs: impl IntoIterator<Item = RunId>) {
        if !self.steps {
            return;
        }
        let mut waiting = self.waiting.lock();
        let before = waiting.len();
        waiting.extend(runs);
        if waiting.len() > before {
            self.woken.notify_one();
        }
    }

    /// Looks at a run again at a time to come.
    pub(crate) fn wake_at(&self, at: Timestamp, run: RunId) {
        let mut wakes = self.wakes.lock();
        wakes.insert((at, run));
        if wakes.len() > WAKES_MAX {
            wakes.pop_last();
        }
    }

    /// When the next of them is to be called.
    pub(crate) fn next_wake(&self) -> Option<Timestamp> {
        self.wakes.lock().first().map(|(at, _)| *at)
    }

    /// Calls those whose time has come.
    pub(crate) fn wake_due(&self, now: Timestamp) {
        let mut wakes = self.wakes.lock();
        while let Some((at, run)) = wakes.pop_first() {
            if at > now {
                wakes.insert((at, run));
                break;
            }
            self.wake([run]);
        }
    }

    /// Waits until some run waits.
    pub(crate) async fn woken(&self) {
        self.woken.notified().await;
    }

    /// These could not be stepped. They wait for the next tick: whatever was in the way may still be.
    pub(crate) fn put_back(&self, runs: Vec<RunId>) {
        self.waiting.lock().extend(runs);
    }

    /// Some of those that wait; the rest is called again.
    pub(crate) fn take(&self, max: usize) -> Vec<RunId> {
        let mut waiting = self.waiting.lock();
        let rest = waiting.iter().nth(max).cloned().map(|first| waiting.split_off(&first));
        let taken = std::mem::take(&mut *waiting);
        if let Some(rest) = rest {
            *waiting = rest;
            self.woken.notify_one();
        }
        taken.into_iter().collect()
    }
}
