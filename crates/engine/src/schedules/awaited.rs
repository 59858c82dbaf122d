//! Who waits for the end of what. Only a hint: without it a schedule looks again after a while.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lockgate_core::ids::{JobId, RunId, TenantId};
use lockgate_core::schedule::{Schedule, SlotOutcome, Target};
use lockgate_ports::Bell;
use parking_lot::Mutex;
use tokio::sync::Notify;

pub(crate) type ScheduleKey = (TenantId, Arc<str>);

/// Targets that are remembered. The ends of others are found by looking again.
const TARGETS_MAX: usize = 10_000;
/// Called schedules that are kept until they are looked at. Others are found by looking again.
const CALLED_MAX: usize = 10_000;

pub(crate) struct AwaitedTargets {
    /// Schedules are turned here. Elsewhere nobody would ever take what is called.
    turns: bool,
    targets: Mutex<BTreeMap<Target, ScheduleKey>>,
    called: Mutex<BTreeSet<ScheduleKey>>,
    bell: Notify,
}

impl AwaitedTargets {
    pub(crate) fn new(turns: bool) -> Self {
        Self { turns, targets: Mutex::default(), called: Mutex::default(), bell: Notify::new() }
    }

    /// Remembers what a schedule waits for, if another of its times cannot start before that has ended: what it started, and
    /// what it is about to start, which may have ended before the next turn is committed.
    pub(super) fn watch(&self, schedule: &Schedule) {
        let queued = schedule.open.iter().any(|slot| slot.outcome == SlotOutcome::Queued);
        if !self.turns || (!queued && schedule.backfills.is_empty()) {
            return;
        }
        let key = key_of(schedule);
        let mut targets = self.targets.lock();
        let mut unseen = false;
        for slot in schedule.open.iter().filter(|slot| slot.outcome != SlotOutcome::Queued) {
            let Some(target) = &slot.target else { continue };
            let is_new = targets.insert(target.clone(), key.clone()).is_none();
            unseen |= is_new && slot.outcome == SlotOutcome::Started;
        }
        while targets.len() > TARGETS_MAX {
            targets.pop_first();
        }
        drop(targets);
        if unseen {
            // It may have ended since the turn asked for ends, when its end was not waited for here: one more look.
            self.call(key);
        }
    }

    pub(crate) fn job_ended(&self, id: &JobId) {
        if id.as_str().starts_with(JobId::SCHEDULED_PREFIX) {
            self.ended(&Target::Job(id.clone()));
        }
    }

    pub(crate) fn run_ended(&self, id: &RunId) {
        self.ended(&Target::Run(id.clone()));
    }

    /// Another process rang. Only ends and changed schedules matter here: a job rings for each of its events, and looking at
    /// each would forget the end that is waited for.
    pub(crate) fn rang(&self, bell: &JobId) {
        if let Some(ended) = Bell::ended_id(bell) {
            match RunId::of(&JobId::new(ended)) {
                Some(run) => self.run_ended(&run),
                None => self.job_ended(&JobId::new(ended)),
            }
        } else if let Some(key) = Bell::schedule_key(bell) {
            self.call(key);
        }
    }

    fn ended(&self, target: &Target) {
        let waiting = self.targets.lock().remove(target);
        if let Some(key) = waiting {
            self.call(key);
        }
    }

    /// The schedule is to be looked at soon.
    pub(crate) fn call(&self, key: ScheduleKey) {
        if !self.turns {
            return;
        }
        self.remember(std::iter::once(key));
        self.bell.notify_one();
    }

    /// Those that were taken and could not be looked at: the next round takes them again. No bell, for the round that failed is tried
    /// again with the next tick.
    pub(crate) fn put_back(&self, taken: Vec<ScheduleKey>) {
        self.remember(taken);
    }

    fn remember(&self, keys: impl IntoIterator<Item = ScheduleKey>) {
        let mut called = self.called.lock();
        called.extend(keys);
        // A process that does not lead takes none of them.
        while called.len() > CALLED_MAX {
            called.pop_last();
        }
    }

    /// Waits until some schedule is called.
    pub(crate) async fn called(&self) {
        self.bell.notified().await;
    }

    /// Some of those that were called; the rest is called again.
    pub(crate) fn take(&self, max: usize) -> Vec<ScheduleKey> {
        let mut called = self.called.lock();
        let rest = called.iter().nth(max).cloned().map(|first| called.split_off(&first)).unwrap_or_default();
        let taken = std::mem::replace(&mut *called, rest);
        if !called.is_empty() {
            self.bell.notify_one();
        }
        taken.into_iter().collect()
    }
}

pub(super) fn key_of(schedule: &Schedule) -> ScheduleKey {
    (schedule.tenant.clone(), schedule.name.clone())
}
