//! Draws turns of schedules, and credentials that come and end.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::access::Credential;
use lockgate_core::ids::TenantId;
use lockgate_core::schedule::{Schedule, Slot, SlotOutcome};
use lockgate_core::time::Timestamp;

use super::Pair;
use super::draw::Dice;
use crate::store::credentials::credential;
use crate::store::runs_stage::audited;
use crate::store::schedules_stage::{later, schedule, turn};
use crate::store::stage::{Found, Proof};
use lockgate_ports::clock::Clock;
use lockgate_ports::store::{CredentialStore, GoesOn, ScheduleChange, ScheduleStore};

const OUTCOMES: [SlotOutcome; 6] = [
    SlotOutcome::Due,
    SlotOutcome::Started,
    SlotOutcome::Queued,
    SlotOutcome::Skipped,
    SlotOutcome::Missed,
    SlotOutcome::Refused,
];

pub(super) fn all() -> Vec<(TenantId, Arc<str>)> {
    [("acme", "cron-0"), ("acme", "cron-1"), ("other", "cron-0")].map(|(tenant, name)| (tenant.into(), name.into())).into()
}

impl Pair {
    /// Takes up to three turns in one call to both, and compares the answers. They follow each other, more or less.
    pub(super) async fn turn(&mut self, dice: &mut Dice) -> Proof {
        let mut changes: Vec<ScheduleChange> = Vec::new();
        for _ in 0..1 + dice.roll(3) {
            let change = self.drawn_turn(dice, &changes).await?;
            changes.push(change);
        }
        let expected = self.model.turn(changes.clone()).await?;
        assert_eq!(self.harness.store.turn(changes.clone()).await?, expected, "turn {changes:?}");
        Ok(())
    }

    async fn drawn_turn(&self, dice: &mut Dice, before: &[ScheduleChange]) -> Found<ScheduleChange> {
        let key = all().swap_remove(usize::try_from(dice.roll(3))?);
        let stored = self.model.load_schedules(std::slice::from_ref(&key)).await?.pop().flatten();
        let same = |change: &&ScheduleChange| (&change.schedule.tenant, &change.schedule.name) == (&key.0, &key.1);
        let latest = before.iter().rev().find(same).map(|change| Some(&change.schedule).filter(|_| !change.gone).cloned());
        let newborn = || schedule(key.0.as_str(), &key.1);
        let mut next = latest.unwrap_or(stored).as_ref().map_or_else(newborn, later);
        next.version += i64::from(dice.once_in(8));
        let wakes_at = |dice: &mut Dice| self.harness.clock.now() + Duration::from_millis(dice.roll(20_000));
        next.wakes_at = dice.once_in(2).then(|| wakes_at(dice));
        let gone = dice.once_in(6);
        let mut change = ScheduleChange { gone, ..turn(Schedule { actor: dice.name("actor", 2).as_str().into(), ..next }) };
        change.fresh = (0..dice.roll(3)).map(|_| self.drawn_slot(dice)).collect();
        change.changed = (0..dice.roll(3)).map(|_| self.drawn_slot(dice)).collect();
        change.audit.extend(dice.once_in(3).then(|| audited(&self.harness, &key.1)));
        Ok(change)
    }

    /// Of few times, so that many are decided already.
    fn drawn_slot(&self, dice: &mut Dice) -> Slot {
        let outcome = OUTCOMES[usize::try_from(dice.roll(6)).unwrap_or(0)];
        let series = ["", "x", "y"][usize::try_from(dice.roll(3)).unwrap_or(0)];
        let nominal = i64::try_from(dice.roll(4)).unwrap_or(0);
        self.harness.slot_of(series, nominal, outcome)
    }

    pub(super) async fn credential(&mut self, dice: &mut Dice) -> Proof {
        let (h, id) = (&self.harness, dice.name("lk", 4));
        let end = h.clock.now() + Duration::from_millis(dice.roll(20_000));
        if dice.once_in(2) {
            let new = Credential { ends_at: dice.once_in(2).then_some(end), ..credential(h, &id) };
            let expected = self.model.add_credential(new.clone(), audited(h, &id)).await?;
            assert_eq!(h.store.add_credential(new, audited(h, &id)).await?, expected, "add_credential");
            return Ok(());
        }
        let (id, at): (_, Timestamp) = (id.as_str().into(), end);
        let other = dice.name("lk", 4);
        let given = dice.once_in(2).then(|| GoesOn { id: other.as_str().into(), at: h.clock.now() });
        let expected = self.model.end_credential(&id, at, given.clone(), audited(h, "end")).await?;
        assert_eq!(h.store.end_credential(&id, at, given, audited(h, "end")).await?, expected, "end_credential");
        Ok(())
    }
}
