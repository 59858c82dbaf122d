//! A turn of a schedule as the columns it will be written to. Filled by the caller, like the sheets of jobs.

use std::collections::BTreeSet;

use lockgate_core::audit::AuditEntry;
use lockgate_core::schedule::{Schedule, Slot, SlotKey};
use lockgate_ports::store::ScheduleChange;

use crate::error::Fault;
use crate::row::outcome_code;

pub(crate) struct TurnSheet {
    pub(crate) schedule: Schedule,
    pub(crate) body: String,
    pub(crate) gone: bool,
    pub(crate) fresh: Vec<SlotSheet>,
    /// Two of its fresh slots have one key.
    pub(crate) has_twins: bool,
    pub(crate) changed: Vec<SlotSheet>,
    pub(crate) audit: Vec<AuditEntry>,
}

pub(crate) struct SlotSheet {
    pub(crate) key: SlotKey,
    pub(crate) outcome: i64,
    pub(crate) decided_at: i64,
    pub(crate) body: String,
}

impl TurnSheet {
    pub(crate) fn fill(change: ScheduleChange) -> Result<Self, Fault> {
        let ScheduleChange { schedule, gone, fresh, changed, audit } = change;
        let keys: BTreeSet<&SlotKey> = fresh.iter().map(|slot| &slot.key).collect();
        let has_twins = keys.len() < fresh.len();
        let sheets = |slots: Vec<Slot>| slots.into_iter().map(SlotSheet::fill).collect::<Result<Vec<_>, Fault>>();
        let (fresh, changed) = (sheets(fresh)?, sheets(changed)?);
        let body = serde_json::to_string(&schedule)?;
        Ok(Self { schedule, body, gone, fresh, has_twins, changed, audit })
    }

    /// Tenant and name.
    pub(crate) fn name(&self) -> (&str, &str) {
        (self.schedule.tenant.as_str(), &self.schedule.name)
    }

    /// Fresh ones, then those that changed.
    pub(crate) fn slots(&self) -> impl Iterator<Item = &SlotSheet> {
        self.fresh.iter().chain(&self.changed)
    }
}

impl SlotSheet {
    fn fill(slot: Slot) -> Result<Self, Fault> {
        let body = serde_json::to_string(&slot)?;
        Ok(Self { outcome: outcome_code(slot.outcome), decided_at: slot.decided_at.as_millis(), key: slot.key, body })
    }
}
