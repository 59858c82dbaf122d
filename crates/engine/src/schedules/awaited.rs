//! Who waits for the end of what. Only a hint: without it a schedule looks again after a while.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lockgate_core::ids::{JobId, RunId, TenantId};
use lockgate_core::schedule::{Outcome, Schedule, Target};
use parking_lot::Mutex;
use tokio::sync::Notify;

pub(crate) type ScheduleKey = (TenantId, Arc<str>);

/// Targets that are remembered. The ends of others are found by looking again.
const TARGETS_MAX: usize = 10_000;

pub(crate) struct Awaited {
    /// Schedules are turned here. Elsewhere nobody would ever take what is called.
    turns: bool,
    targets: Mutex<BTreeMap<Target, ScheduleKey>>,
    called: Mutex<BTreeSet<ScheduleKey>>,
    bell: Notify,
}

impl Awaited {
    pub(crate) fn new(turns: bool) -> Self {
        Self { turns, targets: Mutex::default(), called: Mutex::default(), bell: Notify::new() }
    }

    /// Remembers what a schedule waits for, if another of its times cannot start before that has ended.
    pub(super) fn watch(&self, schedule: &Schedule) {
        let queued = schedule.open.iter().any(|slot| slot.outcome == Outcome::Queued);
        if !queued && schedule.backfills.is_empty() {
            return;
        }
        let key = key_of(schedule);
        let mut targets = self.targets.lock();
        targets.extend(schedule.at_work().map(|target| (target.clone(), key.clone())));
        while targets.len() > TARGETS_MAX {
            targets.pop_first();
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

    /// Another process rang for it: maybe it has ended.
    pub(crate) fn rang(&self, id: &JobId) {
        match RunId::of(id) {
            Some(run) => self.run_ended(&run),
            None => self.job_ended(id),
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
        self.called.lock().insert(key);
        self.bell.notify_one();
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
