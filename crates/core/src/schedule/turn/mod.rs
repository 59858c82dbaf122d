//! One turn of a schedule: records what happened to its targets, decides due times, and names targets to stop.

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

/// The most slots that one turn decides, which bounds its commit. If more are due, the next turn follows at once.
pub(super) const FRESH_MAX: usize = 100;
/// The most slots that may be due and not begun. Targets are begun between two turns, so this bounds that work.
const DUE_MAX: usize = 100;
/// How long to wait before checking again whether an awaited target has ended: briefly at first, longer the longer it takes.
const LOOK_AGAIN_MIN: Duration = Duration::from_secs(1);
const LOOK_AGAIN_MAX: Duration = Duration::from_secs(15);

/// What the caller of a turn has found out about the schedule's targets.
#[derive(Clone, Debug, Default)]
pub struct ScheduleNews {
    pub now: Timestamp,
    /// Targets that exist, and those that were refused with the reason.
    pub begun: BTreeMap<Target, Result<(), Arc<str>>>,
    /// Targets that have ended, including those that were deleted since.
    pub ended: BTreeSet<Target>,
    /// How long a target's row is kept after its end.
    pub keep: Duration,
}

/// The decision of a turn, to be committed as one.
#[derive(Clone, Debug)]
pub struct ScheduleDecision {
    /// The schedule with its next version.
    pub schedule: Schedule,
    pub fresh: Vec<Slot>,
    pub changed: Vec<Slot>,
    /// Targets to stop after the commit. Repeated at each turn until they have ended.
    pub stop: Vec<Target>,
}

impl Schedule {
    /// Decides a turn. None if there is nothing to write.
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
    /// None if the rhythm can no longer be read, which the check at load prevents: then no time comes due.
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

    /// Adds a time that is decided for the first time. If it is still open, the head keeps it.
    pub(super) fn add(&mut self, key: SlotKey, outcome: SlotOutcome, reason: Option<String>) {
        let target = (outcome == SlotOutcome::Due).then(|| self.next.target(&key));
        let slot = Slot { key, outcome, reason: reason.map(Into::into), target, decided_at: self.now };
        if matches!(outcome, SlotOutcome::Due | SlotOutcome::Queued) {
            self.next.open.push(slot.clone());
        }
        self.fresh.push(slot);
    }

    /// Updates a slot that was decided before.
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

    /// When to check again whether an awaited target has ended.
    fn look_again<'a>(&self, open: impl Iterator<Item = &'a Slot>) -> Option<Timestamp> {
        let since = open.map(|slot| slot.decided_at).min()?;
        Some(self.now + (self.now.since(since) / 10).clamp(LOOK_AGAIN_MIN, LOOK_AGAIN_MAX))
    }
}
