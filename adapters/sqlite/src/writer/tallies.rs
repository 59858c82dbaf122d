//! The usage of each tenant, counted in memory while a transaction is open and written once per tenant before its commit.

use std::collections::BTreeMap;

use lockgate_core::ids::TenantId;
use lockgate_ports::Usage;
use rusqlite::{Connection, params};

use super::WriteTx;
use crate::error::StatementError;
use crate::reads;

/// By how much a tenant's counts change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TenantDelta {
    pub(super) live: i64,
    pub(super) ended: i64,
    pub(super) runs: i64,
    pub(super) stored_bytes: i64,
}

/// The changes of one transaction; dropped if it is rolled back.
#[derive(Default)]
pub(super) struct Tallies(BTreeMap<TenantId, TenantDelta>);

impl Tallies {
    pub(super) fn add(&mut self, tenant: &TenantId, change: TenantDelta) {
        if let Some(sum) = self.0.get_mut(tenant) {
            *sum = sum.plus(change);
        } else {
            self.0.insert(tenant.clone(), change);
        }
    }

    /// A tenant whose changes add up to zero is written too, so that it is known to have been here.
    pub(super) fn write(&self, conn: &Connection) -> rusqlite::Result<()> {
        let mut write = conn.prepare_cached(include_str!("../../queries/write_tally.sql"))?;
        for (tenant, change) in &self.0 {
            let TenantDelta { live, ended, runs, stored_bytes } = *change;
            write.execute(params![tenant.as_str(), live, ended, runs, stored_bytes])?;
        }
        Ok(())
    }
}

impl TenantDelta {
    fn plus(self, other: Self) -> Self {
        Self {
            live: self.live + other.live,
            ended: self.ended + other.ended,
            runs: self.runs + other.runs,
            stored_bytes: self.stored_bytes + other.stored_bytes,
        }
    }

    fn over(self, usage: Usage) -> Usage {
        let sum = |kept: u64, change: i64| kept.saturating_add_signed(change);
        Usage {
            live: sum(usage.live, self.live),
            ended: sum(usage.ended, self.ended),
            runs: sum(usage.runs, self.runs),
            stored_bytes: sum(usage.stored_bytes, self.stored_bytes),
        }
    }
}

impl WriteTx<'_> {
    /// The usage after a commit of this transaction.
    pub(super) fn usage(&self, tenant: &TenantId) -> Result<Usage, StatementError> {
        let kept = reads::usage(self.conn, std::slice::from_ref(tenant))?.pop().unwrap_or_default();
        Ok(self.tallies.0.get(tenant).copied().unwrap_or_default().over(kept))
    }

    /// Returns whether the tenant had a tally.
    pub(super) fn forget_tally(&mut self, tenant: &TenantId) -> Result<bool, StatementError> {
        let changed = self.tallies.0.remove(tenant).is_some();
        let gone = self.conn.prepare_cached("DELETE FROM tallies WHERE tenant = ?1")?.execute([tenant.as_str()])?;
        Ok(changed || gone > 0)
    }
}

/// The size of a text in bytes.
pub(super) fn bytes(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}
