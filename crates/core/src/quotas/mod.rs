//! Quotas and ceilings: how much each tenant may have, and all tenants together.
//!
//! A quota protects the other tenants: a tenant that has reached its own is refused, however urgent its jobs are. A ceiling
//! protects the installation: the closer it is, the more urgent a job must be to be admitted.

mod admission;
mod backlog;
mod keys;
mod load;
mod meter;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub use admission::{Limited, LimitedBy, Room};
pub use meter::{Meter, QueueSample};

use crate::ids::{PoolName, TenantId};
use crate::lane::Priority;
use crate::rate::Rate;

/// The snapshot of [`Quotas::default`].
pub const BUILTIN_QUOTAS: &str = "builtin:quotas";

/// The JSON Schema of `quotas.yaml`, for editors.
pub const SCHEMA: &str = include_str!("../../quotas.schema.json");

/// A checked `quotas.yaml`.
#[derive(Clone, Debug)]
pub struct Quotas {
    /// Identifies the text that it was loaded from.
    snapshot: Arc<str>,
    defaults: Quota,
    tenants: BTreeMap<TenantId, Quota>,
    pub ceilings: Ceilings,
}

/// What one tenant may have. An absent field does not limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Jobs that the whole tenant may submit.
    pub submit_rate: Option<Rate>,
    /// Jobs that each of its actors may submit.
    pub actor_rate: Option<Rate>,
    /// Jobs that have not ended.
    pub jobs: Option<u64>,
    /// Runs of DAGs that are not over.
    pub runs: Option<u64>,
    /// The payload of one job.
    pub payload_bytes: Option<u64>,
    /// Stored payloads and results.
    pub stored_bytes: Option<u64>,
}

/// What all tenants together may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ceilings {
    /// Jobs that have not ended.
    pub jobs: Option<u64>,
    /// The longest expected wait of a job for its pool, behind jobs at least as urgent that wait for a slot, at the pool's
    /// present pace.
    pub wait: Option<Duration>,
    /// Jobs that wait in the lanes of one pool.
    pub pools: BTreeMap<PoolName, u64>,
    /// How much of a ceiling each priority may fill, in percent, in the order of `Priority::ALL`.
    pub shares: [u8; 4],
}

/// The default ceiling of jobs that have not ended: what a disk of modest size holds.
const JOBS_MAX: u64 = 10_000_000;

impl Default for Ceilings {
    fn default() -> Self {
        Self { jobs: Some(JOBS_MAX), wait: None, pools: BTreeMap::new(), shares: [100, 95, 90, 70] }
    }
}

impl Ceilings {
    /// How much of a ceiling jobs of this priority may fill.
    fn share(&self, ceiling: u64, priority: Priority) -> u64 {
        // Rounded up, because a small ceiling must not shut out all but the most urgent jobs for ever.
        let share = (u128::from(ceiling) * u128::from(self.shares[priority as usize])).div_ceil(100);
        u64::try_from(share).unwrap_or(u64::MAX)
    }
}

impl Quotas {
    pub fn snapshot(&self) -> &Arc<str> {
        &self.snapshot
    }

    pub fn of(&self, tenant: &TenantId) -> &Quota {
        self.tenants.get(tenant).unwrap_or(&self.defaults)
    }
}

impl Quota {
    /// Whether the tenant's usage must be known to admit a submit.
    pub const fn counts(&self) -> bool {
        self.jobs.is_some() || self.runs.is_some() || self.stored_bytes.is_some()
    }
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            snapshot: BUILTIN_QUOTAS.into(),
            defaults: Quota::default(),
            tenants: BTreeMap::new(),
            ceilings: Ceilings::default(),
        }
    }
}
