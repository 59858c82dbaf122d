//! Checks families: the parent of each child, waiting parents, and whether both are allowed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lockgate_core::ids::JobId;
use lockgate_core::job::{EventKind, Job, Transition};

use super::jobs::told;
use super::{Books, Witness};

/// Children by their keys.
type Keys = BTreeMap<Arc<str>, JobId>;

#[derive(Default)]
pub(super) struct Families {
    /// By parent and life.
    children: BTreeMap<(JobId, u32), Keys>,
    /// The life and attempt of each parent that last announced new children.
    submits: BTreeMap<JobId, (u32, u32)>,
    waiting: BTreeSet<JobId>,
}

impl Books {
    /// Records a change of a job that may be a parent, a child or both. The witness's record is of the job before the
    /// change.
    pub(super) fn relate(&mut self, transition: &Transition) {
        let job = &transition.job;
        let (id, life) = (&job.request.job_id, job.life.no);
        if job.version == 1 {
            self.may_be_born(job);
        }
        for event in &transition.events {
            match event.kind {
                EventKind::ChildrenSubmitted => {
                    self.families.submits.insert(id.clone(), (life, job.life.attempt.no));
                }
                EventKind::WaitingForChildren => {
                    self.families.waiting.insert(id.clone());
                    let free = job.holder().is_none();
                    self.require(free, "F-2 who waits is held by nobody", || told(job, "still held"));
                }
                EventKind::Dispatched => {
                    let waits = self.families.waiting.contains(id);
                    self.require(!waits, "F-2 who waits is held by nobody", || told(job, "dispatched"));
                }
                EventKind::ChildrenGathered => self.may_go_on(job),
                _ => {}
            }
        }
        if job.state().is_terminal() {
            self.families.waiting.remove(id);
        }
        if job.life.family.as_ref().is_some_and(|family| family.settled) {
            // A child that only waits for a scan of its result has done its work.
            let left = self.under_way(job).filter(|child| self.jobs.get(child).is_none_or(|entry| !entry.looked_at));
            self.require(left.is_none(), "F-3 children of a life that ended badly do not go on", || {
                told(job, &format!("{left:?}"))
            });
        }
    }

    /// A child may be created if the attempt that announced it still holds the parent, and its key is free.
    fn may_be_born(&mut self, child: &Job) {
        let Some(of) = &child.request.child_of else { return };
        let id = child.request.job_id.clone();
        let submits = self.families.submits.get(&of.parent).copied();
        let held = self.jobs.get(&of.parent).filter(|parent| parent.holder.is_some() && parent.life == of.life);
        let counts = held.is_some_and(|parent| submits == Some((parent.life, parent.attempt)));
        self.require(counts, "F-1 a child is born only while the attempt that submits it holds its parent", || {
            told(child, &format!("{of:?}, submitted by {submits:?}"))
        });
        let keys = self.families.children.entry((of.parent.clone(), of.life)).or_default();
        let first = keys.entry(of.key.clone()).or_insert_with(|| id.clone()).clone();
        self.require(first == id, "F-1 a key of a life names one child", || format!("{of:?}: {first} and {id}"));
    }

    fn may_go_on(&mut self, parent: &Job) {
        self.families.waiting.remove(&parent.request.job_id);
        // After a review a parent may continue while children are live.
        let all = parent.life.family.as_ref().is_none_or(|family| !family.partial);
        let left = self.under_way(parent).filter(|_| all);
        self.require(left.is_none(), "F-2 a parent goes on when none of its children is under way", || {
            told(parent, &format!("{left:?}"))
        });
    }

    /// A live child of this life. A child that a person revived does not count.
    fn under_way(&self, parent: &Job) -> Option<JobId> {
        let keys = self.families.children.get(&(parent.request.job_id.clone(), parent.life.no))?;
        let live = |id: &&JobId| self.jobs.get(*id).is_some_and(|child| child.life == 1 && !child.state.is_terminal());
        keys.values().find(live).cloned()
    }
}

impl Witness {
    /// Every child that was created, by the life that submitted it.
    pub(crate) fn families(&self) -> BTreeMap<(JobId, u32), Keys> {
        self.books.lock().families.children.clone()
    }
}
