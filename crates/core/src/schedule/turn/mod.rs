//! One turn of a schedule: what became of what it started, what is due, what is to be stopped.

mod backfill;
mod heard;
mod line;
mod missed;
mod times;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::{Schedule, Slot, SlotKey, SlotOutcome, Target, Timetable};
use crate::time::Timestamp;

pub(super) use missed::GivenUp;

/// Slots that one turn may decide: bounds its commit. There is another turn at once if that was not all.
pub(super) const FRESH_MAX: usize = 100;
/// Slots that may be due and not begun. They are begun between two turns, so that there are no more.
const DUE_MAX: usize = 100;
/// How soon to look again whether something has ended that another waits for: soon at first, less often the longer it takes.
const LOOK_AGAIN_MIN: Duration = Duration::from_secs(1);
const LOOK_AGAIN_MAX: Duration = Duration::from_secs(15);

/// What is known at a turn besides the schedule itself.
#[derive(Clone, Debug, Default)]
pub struct ScheduleNews {
    pub now: Timestamp,
    /// Targets that are there, and those that were refused with the reason.
    pub begun: BTreeMap<Target, Result<(), Arc<str>>>,
    /// Targets that have ended, and those that were there and are forgotten.
    pub ended: BTreeSet<Target>,
    /// How long targets are remembered after their end.
    pub keep: Duration,
}

/// What a turn decided, to be committed as one.
#[derive(Clone, Debug)]
pub struct ScheduleDecision {
    /// With the next version.
    pub schedule: Schedule,
    pub fresh: Vec<Slot>,
    pub changed: Vec<Slot>,
    /// What is to be stopped once the turn is committed. It is said again until it has ended.
    pub stop: Vec<Target>,
}

impl Schedule {
    /// `None` if nothing is to be written.
    pub fn turn(&self, news: &ScheduleNews) -> Option<ScheduleDecision> {
        let mut step = ScheduleStep::new(self, news.now);
        step.hear(news);
        if step.next.paused_at.is_none() {
            step.own_times();
            step.promote();
            step.backfill();
            step.stop_replaced();
        }
        let turn = step.finish();
        let unchanged = Schedule { version: self.version, ..turn.schedule.clone() } == *self;
        (!unchanged || !turn.stop.is_empty()).then_some(turn)
    }
}

/// A turn in the making.
pub(super) struct ScheduleStep {
    pub(super) next: Schedule,
    pub(super) now: Timestamp,
    /// Absent if it can no longer be read, which a check at load prevents: then nothing comes due.
    pub(super) table: Option<Timetable>,
    fresh: Vec<Slot>,
    changed: BTreeMap<SlotKey, Slot>,
    stop: Vec<Target>,
}

impl ScheduleStep {
    pub(super) fn new(schedule: &Schedule, now: Timestamp) -> Self {
        let table = Timetable::of(&schedule.spec).ok();
        let next = Schedule { version: schedule.version + 1, ..schedule.clone() };
        Self { next, now, table, fresh: Vec::new(), changed: BTreeMap::new(), stop: Vec::new() }
    }

    pub(super) fn finish(mut self) -> ScheduleDecision {
        self.next.wakes_at = self.wakes_at();
        ScheduleDecision {
            schedule: self.next,
            fresh: self.fresh,
            changed: self.changed.into_values().collect(),
            stop: self.stop,
        }
    }

    fn room(&self) -> usize {
        FRESH_MAX.saturating_sub(self.fresh.len())
    }

    /// A time that is decided for the first time. What is not done with stays in the head.
    pub(super) fn add(&mut self, key: SlotKey, outcome: SlotOutcome, reason: Option<String>) {
        let target = (outcome == SlotOutcome::Due).then(|| self.next.target(&key));
        let slot = Slot { key, outcome, reason: reason.map(Into::into), target, decided_at: self.now };
        if matches!(outcome, SlotOutcome::Due | SlotOutcome::Queued) {
            self.next.open.push(slot.clone());
        }
        self.fresh.push(slot);
    }

    /// A slot that was decided before, and comes to something else now.
    pub(super) fn rewrite(&mut self, slot: Slot) {
        match self.fresh.iter_mut().find(|fresh| fresh.key == slot.key) {
            Some(fresh) => *fresh = slot,
            None => drop(self.changed.insert(slot.key.clone(), slot)),
        }
    }

    fn due(&self) -> usize {
        self.next.open.iter().filter(|slot| slot.outcome == SlotOutcome::Due).count()
    }

    fn wakes_at(&self) -> Option<Timestamp> {
        if self.due() > 0 {
            return Some(self.now);
        }
        if self.next.paused_at.is_some() {
            return None;
        }
        let own = self.next_own().map(|(_, due)| due.max(self.now));
        own.into_iter().chain(self.queue_wakes_at()).chain(self.backfills_wake_at()).min()
    }

    /// When to look again for the end of something that is open.
    fn look_again<'a>(&self, open: impl Iterator<Item = &'a Slot>) -> Option<Timestamp> {
        let since = open.map(|slot| slot.decided_at).min()?;
        Some(self.now + (self.now.since(since) / 10).clamp(LOOK_AGAIN_MIN, LOOK_AGAIN_MAX))
    }
}
