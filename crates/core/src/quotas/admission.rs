//! Admission: whether a submit is accepted now.

use std::time::Duration;

use super::{Ceilings, Meter, Quota};
use crate::ids::{ActorId, PoolName, TenantId};
use crate::lane::Priority;
use crate::time::Timestamp;

/// `Retry-After` where the end of the wait is not known, because someone has to end or delete work first.
const ASK_AGAIN: Duration = Duration::from_secs(30);

/// Why a submit is refused, and when to retry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Limited {
    pub by: LimitedBy,
    pub text: String,
    pub retry_after: Duration,
}

/// The limit that refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitedBy {
    /// The caller submits too fast.
    Rate,
    /// The tenant has reached its quota.
    Quota,
    /// All tenants together have reached a ceiling.
    Ceiling,
}

impl LimitedBy {
    /// The error code, which is part of the API.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Rate => "rate_limited",
            Self::Quota => "quota_exceeded",
            Self::Ceiling => "overloaded",
        }
    }
}

/// What a tenant has, including what was admitted since it was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    pub jobs: u64,
    pub runs: u64,
    pub stored_bytes: u64,
}

impl Quota {
    /// The tenant's submit_rate has no token left.
    pub fn too_fast(tenant: &TenantId, again_in: Duration) -> Limited {
        let text = format!("tenant {tenant:?} sends more than its submit_rate allows; come back in {again_in:?}");
        Limited { by: LimitedBy::Rate, text, retry_after: again_in }
    }

    /// The actor_rate of this caller has no token left; other actors of the tenant may have some.
    pub fn actor_too_fast(actor: &ActorId, tenant: &TenantId, again_in: Duration) -> Limited {
        let text =
            format!("actor {actor:?} of tenant {tenant:?} sends more than the actor_rate allows; come back in {again_in:?}");
        Limited { by: LimitedBy::Rate, text, retry_after: again_in }
    }

    pub fn admit_job(&self, tenant: &TenantId, has: &Room, payload_bytes: u64) -> Result<(), Limited> {
        let full = |what: &str, max: u64, how: &str| {
            let text = format!("tenant {tenant:?} has reached its quota of {max} {what}; {how}");
            Err(Limited { by: LimitedBy::Quota, text, retry_after: ASK_AGAIN })
        };
        match *self {
            Self { jobs: Some(max), .. } if has.jobs >= max => full("jobs that have not ended", max, "let some of them end"),
            Self { stored_bytes: Some(max), .. } if has.stored_bytes.saturating_add(payload_bytes) > max => {
                full("stored bytes", max, "ended jobs are deleted by age, or ask for a larger quota")
            }
            _ => Ok(()),
        }
    }

    /// A run's later jobs are not admitted one by one, so there must be room for its first job now.
    pub fn admit_run(&self, tenant: &TenantId, has: &Room) -> Result<(), Limited> {
        match self.runs {
            Some(max) if has.runs >= max => {
                let text = format!("tenant {tenant:?} has reached its quota of {max} runs that are not over; let some end");
                Err(Limited { by: LimitedBy::Quota, text, retry_after: ASK_AGAIN })
            }
            _ => self.admit_job(tenant, has, 0),
        }
    }
}

impl Ceilings {
    /// Whether a job of this priority is admitted beside `live` jobs that have not ended.
    pub fn admit(&self, priority: Priority, live: u64, all: &mut Meter, now: Timestamp) -> Result<(), Limited> {
        let Some(share) = self.jobs.map(|max| self.share(max, priority)).filter(|share| live >= *share) else {
            return Ok(());
        };
        let retry_after = all.send_away(now, priority, live - share + 1);
        let text = format!("there is room for {share} {priority} jobs that have not ended, and {live} are there");
        Err(Limited { by: LimitedBy::Ceiling, text, retry_after })
    }

    /// Whether the job's pool has room: within the pool's ceiling, and within the expected wait behind more urgent jobs. If
    /// a slot is free for the job, as `has_slot` says, the expected wait does not matter; it is called only in that case,
    /// since it is costly.
    pub fn admit_to(
        &self,
        pool: &PoolName,
        priority: Priority,
        meter: &mut Meter,
        now: Timestamp,
        has_slot: impl FnOnce() -> bool,
    ) -> Result<(), Limited> {
        let waiting = meter.waiting(now);
        if let Some(share) = self.pools.get(pool).map(|max| self.share(*max, priority)).filter(|share| waiting >= *share) {
            let retry_after = meter.send_away(now, priority, waiting - share + 1);
            let text = format!("pool {pool:?} has room for {share} waiting {priority} jobs, and {waiting} wait");
            return Err(Limited { by: LimitedBy::Ceiling, text, retry_after });
        }
        let (Some(max), Some(wait)) = (self.wait, meter.wait(now, priority)) else { return Ok(()) };
        let share = max * u32::from(self.shares[priority as usize]) / 100;
        if wait <= share || has_slot() {
            return Ok(());
        }
        let excess = meter.pace().map_or(0.0, |pace| wait.saturating_sub(share).as_secs_f64() * pace);
        let retry_after = meter.send_away(now, priority, excess as u64 + 1);
        let text = format!(
            "a {priority} job may wait {:.1} s for pool {pool:?}, and would wait about {:.1} s",
            share.as_secs_f64(),
            wait.as_secs_f64().min(1e6)
        );
        Err(Limited { by: LimitedBy::Ceiling, text, retry_after })
    }
}
