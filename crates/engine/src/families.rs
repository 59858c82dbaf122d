//! Which parents may have nothing left to wait for, and which ended before their children did.
//!
//! A child that ends says so here, in the process where its end was committed. Nothing is lost with it: the Store knows who
//! waits (`Duty::Gather`) and who left children behind (`Duty::Disown`), and the leader of the loop looks them over.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lockgate_core::ids::{JobId, JobSeq};
use lockgate_core::job::{Duty, Job};
use lockgate_core::time::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// While a child is known to be under way, the ends of its siblings open nothing. What is known is not believed for longer: it
/// may have ended in another process.
pub(crate) const BELIEVED_FOR: Duration = Duration::from_secs(1);
/// Parents with a known child. More are only looked at more often.
const KNOWN_MAX: usize = 10_000;

#[derive(Default)]
pub(crate) struct FamilyLooks {
    state: Mutex<FamilyQueues>,
    called: Notify,
}

#[derive(Default)]
struct FamilyQueues {
    /// Parents whose barrier may be open.
    gather: BTreeSet<JobId>,
    /// The same, once nothing is believed of them any more.
    later: BTreeSet<JobId>,
    /// Parents that ended before their children.
    disown: BTreeSet<JobId>,
    /// Of parents that wait: a child that was under way, and when.
    under_way: BTreeMap<JobId, (JobSeq, Timestamp)>,
}

/// What is to be looked at.
#[derive(Default)]
pub(crate) struct FamilyBatch {
    pub(crate) gather: Vec<JobId>,
    pub(crate) disown: Vec<JobId>,
}

impl FamilyLooks {
    /// What a step of a job means to its parent and to its children.
    pub(crate) fn moved(&self, before: &Job, job: &Job, now: Timestamp) {
        if job.state().is_terminal() && !before.state().is_terminal() && job.request.child_of.is_some() {
            self.ended(job, now);
        }
        let begins = |duty| job.owes(duty) && !before.owes(duty);
        let id = &job.request.job_id;
        if begins(Duty::Gather) && self.state.lock().gather.insert(id.clone()) {
            self.called.notify_one();
        }
        if begins(Duty::Disown) && self.state.lock().disown.insert(id.clone()) {
            self.called.notify_one();
        }
        if before.owes(Duty::Gather) && !job.owes(Duty::Gather) {
            self.state.lock().under_way.remove(id);
        }
    }

    fn ended(&self, child: &Job, now: Timestamp) {
        let Some(of) = &child.request.child_of else { return };
        let mut state = self.state.lock();
        let sibling = state.under_way.get(&of.parent).filter(|(seq, at)| *seq != child.seq && now < *at + BELIEVED_FOR);
        if sibling.is_some() {
            state.later.insert(of.parent.clone());
        } else if state.gather.insert(of.parent.clone()) {
            self.called.notify_one();
        }
    }

    /// A child of this parent is under way.
    pub(crate) fn know(&self, parent: &JobId, child: JobSeq, now: Timestamp) {
        let known = &mut self.state.lock().under_way;
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(parent.clone(), (child, now));
    }

    pub(crate) async fn called(&self) {
        self.called.notified().await;
    }

    /// Everything that was called; with `all` also what could wait for a tick.
    pub(crate) fn take(&self, all: bool) -> FamilyBatch {
        let mut state = self.state.lock();
        let mut gather = std::mem::take(&mut state.gather);
        if all {
            gather.append(&mut state.later);
        }
        FamilyBatch { gather: gather.into_iter().collect(), disown: std::mem::take(&mut state.disown).into_iter().collect() }
    }

    /// These could not be looked at: with the next tick.
    pub(crate) fn put_back(&self, calls: FamilyBatch) {
        let mut state = self.state.lock();
        state.later.extend(calls.gather);
        state.disown.extend(calls.disown);
    }
}
