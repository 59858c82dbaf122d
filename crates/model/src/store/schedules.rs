//! Schedules, their turns and their slots.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use lockgate_core::ids::TenantId;
use lockgate_core::schedule::{Schedule, Series, Slot, SlotKey, SlotOutcome};
use lockgate_core::time::Timestamp;

use super::MemoryStore;
use super::data::{Data, REFUSED, ScheduleRowKey, SlotRows};
use lockgate_ports::store::{
    Cursor, Listing, ScheduleChange, ScheduleStore, SlotQuery, StoreError, TurnConflict, next_place, places,
};

#[async_trait]
impl ScheduleStore for MemoryStore {
    async fn turn(&self, changes: Vec<ScheduleChange>) -> Result<Vec<Result<(), TurnConflict>>, StoreError> {
        self.mood.wait_for_turn().await;
        let (mut data, _) = self.open();
        let name = |change: &ScheduleChange| (change.schedule.tenant.clone(), Arc::clone(&change.schedule.name));
        if changes.iter().any(|change| data.refused_schedules.contains(&name(change))) {
            data.refusals += 1;
            return Err(StoreError::Refused(REFUSED.to_owned()));
        }
        Ok(changes.into_iter().map(|change| data.turn(change)).collect())
    }

    async fn load_schedules(&self, keys: &[(TenantId, Arc<str>)]) -> Result<Vec<Option<Schedule>>, StoreError> {
        self.mood.names_schedules()?;
        let (data, _) = self.open();
        if let Some((tenant, name)) = keys.iter().find(|key| data.spoilt_schedules.contains(*key)) {
            return Err(StoreError::Corrupt(format!("schedule {name} of {tenant} was spoilt")));
        }
        Ok(keys.iter().map(|key| data.schedules.get(key).cloned()).collect())
    }

    async fn list_schedules(
        &self,
        tenant: &TenantId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Schedule>, StoreError> {
        let (data, _) = self.open();
        let wanted = |row: &&Schedule| row.tenant == *tenant && after.is_none_or(|after| *row.name > *after);
        let readable = data.schedules.values().filter(wanted).filter(|row| data.is_readable_schedule(row));
        Ok(readable.take(limit).cloned().collect())
    }

    async fn due_schedules(&self, limit: usize) -> Result<Vec<Schedule>, StoreError> {
        let (data, now) = self.open();
        let mut due: Vec<&Schedule> =
            data.schedules.values().filter(|row| row.wakes_at.is_some_and(|at| at <= now)).collect();
        // Stable, so that those of one time keep the order of their names.
        due.sort_by_key(|row| row.wakes_at);
        Ok(due.into_iter().filter(|row| data.is_readable_schedule(row)).take(limit).cloned().collect())
    }

    async fn next_schedule(&self) -> Result<(Option<Timestamp>, Timestamp), StoreError> {
        let (data, now) = self.open();
        Ok((data.schedules.values().filter_map(|row| row.wakes_at).min(), now))
    }

    async fn list_slots(&self, query: SlotQuery) -> Result<Listing<Slot>, StoreError> {
        Ok(self.open().0.list_slots(&query))
    }
}

impl Data {
    /// Asked of what is about to be told.
    fn is_readable_schedule(&self, row: &Schedule) -> bool {
        let spoilt = self.spoilt_schedules.contains(&(row.tenant.clone(), Arc::clone(&row.name)));
        if spoilt {
            self.unreadable.tell(&format!("schedule {} of {}", row.name, row.tenant), &"it was spoilt");
        }
        !spoilt
    }

    /// T-1: checks a turn as a whole before anything of it is written.
    fn turn(&mut self, change: ScheduleChange) -> Result<(), TurnConflict> {
        let ScheduleChange { schedule, gone, fresh, changed, audit } = change;
        let name = (schedule.tenant.clone(), Arc::clone(&schedule.name));
        let current = self.schedules.get(&name).map_or(0, |row| row.version);
        let removes_nothing = gone && current == 0;
        let mut keys = BTreeSet::new();
        let mut is_free = |slot: &Slot| keys.insert(slot.key.clone()) && !self.has_slot(&name, &slot.key);
        if current + 1 != schedule.version || removes_nothing || !fresh.iter().all(&mut is_free) {
            return Err(TurnConflict);
        }
        if gone {
            self.schedules.remove(&name);
        } else {
            self.schedules.insert(name.clone(), schedule);
        }
        if !(fresh.is_empty() && changed.is_empty()) {
            let slots = self.slots.entry(name).or_default();
            fresh.into_iter().chain(changed).for_each(|slot| slots.keep(slot));
        }
        self.keep_audit(audit);
        Ok(())
    }

    fn has_slot(&self, name: &ScheduleRowKey, key: &SlotKey) -> bool {
        self.slots.get(name).is_some_and(|slots| slots.rows.contains_key(key))
    }

    fn list_slots(&self, query: &SlotQuery) -> Listing<Slot> {
        let (before, limit) = (query.cursor.map_or(i64::MAX, |cursor| cursor.0), query.limit.max(1));
        let Some(slots) = self.slots.get(&(query.tenant.clone(), Arc::clone(&query.schedule))) else {
            return Listing { items: Vec::new(), next: None };
        };
        let page: Vec<&(i64, SlotKey)> = slots.listed.range(..from(before)).rev().take(limit).collect();
        let next = page.last().filter(|_| page.len() == limit).map(|(place, _)| Cursor(*place));
        Listing { items: page.iter().filter_map(|(_, key)| Some(slots.rows.get(key)?.1.clone())).collect(), next }
    }

    /// Oldest decision first.
    pub(super) fn prune_slots(&mut self, before: Timestamp, limit: usize) -> u64 {
        let is_old =
            |slot: &Slot| slot.decided_at < before && !matches!(slot.outcome, SlotOutcome::Due | SlotOutcome::Queued);
        let all = self.slots.iter().flat_map(|(name, slots)| slots.rows.values().map(move |(_, slot)| (name, slot)));
        let mut old: Vec<_> = all.filter(|(_, slot)| is_old(slot)).collect();
        old.sort_unstable_by_key(|(name, slot)| (slot.decided_at, *name, &slot.key));
        let gone: Vec<(ScheduleRowKey, SlotKey)> =
            old.into_iter().take(limit).map(|(name, slot)| (name.clone(), slot.key.clone())).collect();
        for (name, key) in &gone {
            if let Some(slots) = self.slots.get_mut(name) {
                slots.forget(key);
            }
        }
        self.slots.retain(|_, slots| !slots.rows.is_empty());
        gone.len() as u64
    }
}

impl SlotRows {
    fn keep(&mut self, slot: Slot) {
        if let Some((_, row)) = self.rows.get_mut(&slot.key) {
            *row = slot;
            return;
        }
        let (first, last) = places(slot.key.nominal);
        let same_time = self.listed.range(from(first)..from(last + 1));
        let place = next_place(slot.key.nominal, same_time.last().map(|(place, _)| *place));
        self.listed.insert((place, slot.key.clone()));
        self.rows.insert(slot.key.clone(), (place, slot));
    }

    pub(super) fn forget(&mut self, key: &SlotKey) {
        if let Some((place, _)) = self.rows.remove(key) {
            self.listed.remove(&(place, key.clone()));
        }
    }
}

/// Before everything that stands at this place.
fn from(place: i64) -> (i64, SlotKey) {
    (place, SlotKey { series: Series::default(), nominal: Timestamp::from_millis(i64::MIN) })
}
