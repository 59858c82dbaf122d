//! The queue of a schedule: own times and triggers wait for each other as the overlap policy says. Unless it is `allow`,
//! only one target of the schedule and all its backfills runs at a time, and backfills yield.

use super::super::{Overlap, Slot, SlotOutcome};
use super::ScheduleStep;
use crate::time::Timestamp;

impl ScheduleStep {
    /// T-5: the outcome of a time, given the slots before it.
    pub(in crate::schedule) fn place_in_line(&mut self, time: Timestamp) -> (SlotOutcome, Option<String>) {
        let Some(ahead) = self.line().next() else { return self.place_after_backfills() };
        let (is_waiting, ahead) = (ahead.outcome == SlotOutcome::Queued, ahead.key.nominal);
        let waiting = self.queued().count();
        match self.next.spec.overlap {
            Overlap::Allow => (SlotOutcome::Due, None),
            Overlap::Skip if is_waiting => {
                (SlotOutcome::Skipped, Some(format!("{} still waited for a backfill", self.written(ahead))))
            }
            Overlap::Skip => (SlotOutcome::Skipped, Some(format!("what {} started was still at work", self.written(ahead)))),
            Overlap::Queue if waiting >= self.next.spec.queue as usize => {
                (SlotOutcome::Skipped, Some(format!("the queue was full: {waiting} waited already")))
            }
            Overlap::Queue => {
                (SlotOutcome::Queued, Some(format!("waits until what {} started has ended", self.written(ahead))))
            }
            Overlap::Replace => {
                self.skip_queued(&format!("replaced by {}", self.written(time)));
                if is_waiting {
                    return self.place_after_backfills();
                }
                (SlotOutcome::Queued, Some(format!("waits until what {} started has stopped", self.written(ahead))))
            }
        }
    }

    /// A backfill neither costs the schedule one of its own times nor is stopped for one: the time waits for the backfill's
    /// running target and then comes before the rest of the backfill.
    fn place_after_backfills(&self) -> (SlotOutcome, Option<String>) {
        match self.next.open.first().filter(|_| self.is_one_at_a_time()) {
            None => (SlotOutcome::Due, None),
            Some(slot) => {
                let at = self.written(slot.key.nominal);
                (SlotOutcome::Queued, Some(format!("waits until what a backfill started for {at} has ended")))
            }
        }
    }

    pub(in crate::schedule) fn is_one_at_a_time(&self) -> bool {
        self.next.spec.overlap != Overlap::Allow
    }

    /// Starts queued slots in order, as soon as no slot before them is open.
    pub(super) fn promote(&mut self) {
        while let Some(at) = self.next.open.iter().position(|slot| slot.outcome == SlotOutcome::Queued) {
            let busy = self.next.open.iter().any(|slot| slot.outcome != SlotOutcome::Queued);
            if (busy && self.is_one_at_a_time()) || self.due() >= super::DUE_MAX {
                break;
            }
            let queued = self.next.open.remove(at);
            let target = Some(self.next.target(&queued.key));
            let due = Slot { outcome: SlotOutcome::Due, reason: None, target, decided_at: self.now, ..queued };
            self.rewrite(due.clone());
            self.next.open.push(due);
        }
    }

    /// Repeated at every turn until the target has ended: the process that was to stop it may have crashed.
    pub(super) fn stop_replaced(&mut self) {
        if self.next.spec.overlap != Overlap::Replace || self.queued().next().is_none() {
            return;
        }
        let at_work = self.line().filter(|slot| slot.outcome == SlotOutcome::Started);
        self.stop = at_work.filter_map(|slot| slot.target.clone()).collect();
    }

    pub(in crate::schedule) fn skip_queued(&mut self, reason: &str) {
        let (queued, open) =
            std::mem::take(&mut self.next.open).into_iter().partition(|slot| slot.outcome == SlotOutcome::Queued);
        self.next.open = open;
        let queued: Vec<Slot> = queued;
        for slot in queued {
            self.rewrite(Slot { outcome: SlotOutcome::Skipped, reason: Some(reason.into()), decided_at: self.now, ..slot });
        }
    }

    pub(super) fn queue_wakes_at(&self) -> Option<Timestamp> {
        self.queued().next()?;
        self.look_again(self.next.open.iter())
    }

    fn line(&self) -> impl Iterator<Item = &Slot> {
        self.next.open.iter().filter(|slot| slot.key.series.is_in_line())
    }

    fn queued(&self) -> impl Iterator<Item = &Slot> {
        self.next.open.iter().filter(|slot| slot.outcome == SlotOutcome::Queued)
    }

    fn written(&self, time: Timestamp) -> String {
        self.table.as_ref().map_or_else(|| time.to_string(), |table| table.write(time))
    }
}
