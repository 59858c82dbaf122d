//! Configuration in force, and the audit trail.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_core::audit::{AuditEntry, AuditRow, Block};
use lockgate_core::time::Timestamp;

use super::data::Data;
use lockgate_ports::store::{Activation, Active, Outdated, SnapshotKind, SnapshotRow};

impl Data {
    pub(super) fn active(&self, kind: SnapshotKind) -> Option<&Active> {
        self.activations.get(&kind)?.last()
    }

    pub(super) fn activate(&mut self, change: Activation, now: Timestamp) -> Result<u64, Outdated> {
        let Activation { kind, id, text, actor, expected, audit } = change;
        let in_force = self.active(kind).map_or(0, |active| active.version);
        if in_force != expected {
            return Err(Outdated { in_force });
        }
        // An id names one text for ever.
        let text = self.snapshot(kind, &id).filter(|known| !known.is_empty()).unwrap_or(text);
        let version = in_force + 1;
        self.activations.entry(kind).or_default().push(Active { version, id, text, actor, at: now });
        self.keep_audit(vec![audit]);
        Ok(version)
    }

    pub(super) fn snapshots(&self, kind: SnapshotKind, limit: usize) -> Vec<SnapshotRow> {
        let mut latest: BTreeMap<&str, &Active> = BTreeMap::new();
        for active in self.activations.get(&kind).into_iter().flatten() {
            latest.insert(&active.id, active);
        }
        let row = |active: &&Active| SnapshotRow {
            id: active.id.clone(),
            version: active.version,
            actor: active.actor.clone(),
            at: active.at,
        };
        let mut rows: Vec<_> = latest.values().map(row).collect();
        rows.sort_unstable_by_key(|row| std::cmp::Reverse(row.version));
        rows.truncate(limit);
        rows
    }

    pub(super) fn snapshot(&self, kind: SnapshotKind, id: &str) -> Option<Arc<str>> {
        self.activations.get(&kind)?.iter().find(|active| &*active.id == id).map(|active| active.text.clone())
    }

    pub(super) fn keep_audit(&mut self, entries: Vec<AuditEntry>) {
        for entry in entries {
            let id = self.audit.last().map_or(1, |row| row.id + 1);
            self.audit.push(AuditRow { id, entry });
        }
    }

    pub(super) fn seal(&mut self, block: &Block) -> bool {
        let continues = block.previous == self.blocks.last().map(|head| head.seal).unwrap_or_default();
        let next = block.no == self.blocks.len() as u64 + 1;
        if continues && next {
            self.blocks.push(block.clone());
        }
        continues && next
    }
}
