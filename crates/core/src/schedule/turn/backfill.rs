//! Backfills: starts times of a past span, a few at a time.

use super::super::{Backfill, Slot, SlotKey, SlotOutcome, Timetable};
use super::ScheduleStep;
use crate::time::Timestamp;

impl ScheduleStep {
    /// T-6: starts as many as may run at once, each time once, and removes a finished backfill. T-5: unless the overlap
    /// policy is `allow`, only one target runs at a time, and none while any other slot of the schedule is open.
    pub(super) fn backfill(&mut self) {
        if self.next.backfills.is_empty() {
            return;
        }
        let Ok(table) = Timetable::of(&self.next.spec).map(Timetable::unbounded) else { return };
        for mut backfill in std::mem::take(&mut self.next.backfills) {
            while self.has_room(&backfill)
                && let Some(nominal) = left(&table, &backfill)
            {
                self.add(SlotKey { series: backfill.series(), nominal }, SlotOutcome::Due, None);
                backfill.done_until = nominal;
            }
            if left(&table, &backfill).is_some() || self.open_of(&backfill).next().is_some() {
                self.next.backfills.push(backfill);
            }
        }
    }

    fn has_room(&self, backfill: &Backfill) -> bool {
        self.room() > 0 && !self.is_full(backfill)
    }

    fn is_full(&self, backfill: &Backfill) -> bool {
        if self.is_one_at_a_time() {
            return !self.next.open.is_empty();
        }
        self.open_of(backfill).count() >= backfill.concurrency as usize
    }

    fn open_of(&self, backfill: &Backfill) -> impl Iterator<Item = &Slot> {
        let series = backfill.series();
        self.next.open.iter().filter(move |slot| slot.key.series == series)
    }

    /// Now if there is room that this turn could not use, else when a target may have ended.
    pub(super) fn backfills_wake_at(&self) -> Option<Timestamp> {
        let wakes = |backfill: &Backfill| {
            let all = left_of(&self.next, backfill).is_none();
            match self.is_full(backfill) || all {
                true if self.is_one_at_a_time() => self.look_again(self.next.open.iter()),
                true => self.look_again(self.open_of(backfill)),
                false => Some(self.now),
            }
        };
        self.next.backfills.iter().filter_map(wakes).min()
    }
}

fn left(table: &Timetable, backfill: &Backfill) -> Option<Timestamp> {
    table.next(backfill.done_until).filter(|time| *time <= backfill.until)
}

fn left_of(schedule: &super::Schedule, backfill: &Backfill) -> Option<Timestamp> {
    left(&Timetable::of(&schedule.spec).ok()?.unbounded(), backfill)
}
