//! How much of an installation each tenant may take, and how much there is for all of them.
//!
//! A quota is a promise to everybody else: a tenant that reached its own is refused whatever its jobs are worth. A ceiling
//! protects the whole: the nearer it comes, the more urgent a job must be to be let in.

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

/// `quotas.yaml`, checked and ready to be asked.
#[derive(Clone, Debug)]
pub struct Quotas {
    /// Names the text it came from.
    snapshot: Arc<str>,
    defaults: Quota,
    tenants: BTreeMap<TenantId, Quota>,
    pub ceilings: Ceilings,
}

/// What one tenant may take. What is absent is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Jobs the whole tenant may submit.
    pub submit_rate: Option<Rate>,
    /// Jobs each of its actors may submit.
    pub actor_rate: Option<Rate>,
    /// Jobs that have not ended.
    pub jobs: Option<u64>,
    /// Runs of DAGs that are not over.
    pub runs: Option<u64>,
    /// The payload of one job.
    pub payload_bytes: Option<u64>,
    /// Payloads and results that are kept.
    pub stored_bytes: Option<u64>,
}

/// What all tenants together may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ceilings {
    /// Jobs that have not ended.
    pub jobs: Option<u64>,
    /// How long a job is expected to wait for its pool behind those that are at least as urgent and wait for a slot, at the
    /// pace at which the pool takes jobs now.
    pub wait: Option<Duration>,
    /// Jobs that wait in the lanes of one pool.
    pub pools: BTreeMap<PoolName, u64>,
    /// How much of a ceiling a priority may fill, in percent, in the order of `Priority::ALL`.
    pub shares: [u8; 4],
}

/// Jobs that have not ended, where nobody says otherwise: what a disk of modest size holds.
const JOBS_MAX: u64 = 10_000_000;

impl Default for Ceilings {
    fn default() -> Self {
        Self { jobs: Some(JOBS_MAX), wait: None, pools: BTreeMap::new(), shares: [100, 95, 90, 70] }
    }
}

impl Ceilings {
    /// How much of a ceiling jobs of this priority may fill.
    fn share(&self, ceiling: u64, priority: Priority) -> u64 {
        // Rounded up: a small ceiling must not shut out all but the most urgent for ever.
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
    /// Whether what the tenant has must be known to judge what it asks for.
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
