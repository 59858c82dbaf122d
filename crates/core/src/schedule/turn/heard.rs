//! Records what happened to the targets of open slots.

use super::super::start::is_forgotten;
use super::super::{Slot, SlotOutcome};
use super::{ScheduleNews, ScheduleStep};

impl ScheduleStep {
    pub(super) fn hear(&mut self, news: &ScheduleNews) {
        for slot in std::mem::take(&mut self.next.open) {
            let kept = match slot.outcome {
                SlotOutcome::Due => self.hear_due(slot, news),
                _ => Some(slot),
            };
            self.next.open.extend(kept.filter(|slot| self.is_awaited(slot, news)));
        }
    }

    /// Records the outcome of a due slot; returns the slot if it is still open.
    fn hear_due(&mut self, slot: Slot, news: &ScheduleNews) -> Option<Slot> {
        let told = slot.target.as_ref().and_then(|target| news.begun.get(target));
        let (outcome, reason) = match told {
            Some(Ok(())) => (SlotOutcome::Started, None),
            Some(Err(reason)) => (SlotOutcome::Refused, Some(reason.clone())),
            None if is_forgotten(&slot, self.now, news.keep) => {
                (SlotOutcome::Missed, Some("nobody knows whether it was started: that was too long ago".into()))
            }
            None => return Some(slot),
        };
        let slot = Slot { outcome, reason, decided_at: self.now, ..slot };
        self.rewrite(slot.clone());
        (outcome == SlotOutcome::Started).then_some(slot)
    }

    /// A started target is awaited only if another slot may have to wait for its end.
    fn is_awaited(&self, slot: &Slot, news: &ScheduleNews) -> bool {
        if slot.outcome != SlotOutcome::Started {
            return true;
        }
        let ended = slot.target.as_ref().is_none_or(|target| news.ended.contains(target));
        let of_a_backfill = || self.next.backfills.iter().any(|backfill| backfill.series() == slot.key.series);
        (self.is_one_at_a_time() || of_a_backfill()) && !ended
    }
}
