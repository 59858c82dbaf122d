//! A turn of a schedule as the columns that SQL stores write it to. The caller encodes it before a transaction opens.

use std::collections::BTreeSet;

use lockgate_core::audit::AuditEntry;
use lockgate_core::schedule::{Schedule, Slot, SlotKey, SlotOutcome};

use lockgate_ports::store::ScheduleChange;

pub struct EncodedScheduleTurn {
    pub schedule: Schedule,
    pub body: String,
    pub gone: bool,
    pub fresh: Vec<EncodedSlot>,
    /// Whether two of its fresh slots have one key.
    pub has_twins: bool,
    pub changed: Vec<EncodedSlot>,
    pub audit: Vec<AuditEntry>,
}

pub struct EncodedSlot {
    pub key: SlotKey,
    pub outcome: i64,
    pub decided_at: i64,
    pub body: String,
}

impl EncodedScheduleTurn {
    pub fn fill(change: ScheduleChange) -> Result<Self, serde_json::Error> {
        let ScheduleChange { schedule, gone, fresh, changed, audit } = change;
        let keys: BTreeSet<&SlotKey> = fresh.iter().map(|slot| &slot.key).collect();
        let has_twins = keys.len() < fresh.len();
        let sheets = |slots: Vec<Slot>| slots.into_iter().map(EncodedSlot::fill).collect::<Result<Vec<_>, _>>();
        let (fresh, changed) = (sheets(fresh)?, sheets(changed)?);
        let body = serde_json::to_string(&schedule)?;
        Ok(Self { schedule, body, gone, fresh, has_twins, changed, audit })
    }

    /// The tenant and the name.
    pub fn name(&self) -> (&str, &str) {
        (self.schedule.tenant.as_str(), &self.schedule.name)
    }

    /// Fresh slots, then changed ones.
    pub fn slots(&self) -> impl Iterator<Item = &EncodedSlot> {
        self.fresh.iter().chain(&self.changed)
    }

    /// The turn's weight in a transaction, in changes.
    pub fn weight(&self) -> usize {
        1 + self.fresh.len() + self.changed.len()
    }
}

impl EncodedSlot {
    fn fill(slot: Slot) -> Result<Self, serde_json::Error> {
        let body = serde_json::to_string(&slot)?;
        Ok(Self { outcome: outcome_code(slot.outcome), decided_at: slot.decided_at.as_millis(), key: slot.key, body })
    }
}

const fn outcome_code(outcome: SlotOutcome) -> i64 {
    outcome as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The codes are stored, so they must not change.
    #[test]
    fn outcome_codes_are_the_ones_the_schemas_name() {
        use SlotOutcome::{Due, Missed, Queued, Refused, Skipped, Started};
        assert_eq!([Due, Started, Queued, Skipped, Missed, Refused].map(outcome_code), [0, 1, 2, 3, 4, 5]);
    }
}
