//! Tenants.

use lockgate_core::rate::Rate;
use lockgate_engine::{ErasedPart, TenantView};
use serde::Serialize;
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
#[schema(as = TenantList)]
pub(in crate::rest) struct Tenants {
    tenants: Vec<Tenant>,
    /// Where the list goes on, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_after: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Tenant {
    name: String,
    /// Jobs that have not ended.
    jobs: u64,
    /// Jobs ended and kept.
    ended: u64,
    /// Runs that are not over.
    runs: u64,
    /// Payloads and results that are kept.
    stored_bytes: u64,
    quota: TenantQuota,
}

/// What is absent is not limited.
#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct TenantQuota {
    #[serde(skip_serializing_if = "Option::is_none")]
    submit_rate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor_rate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jobs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stored_bytes: Option<u64>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct ErasedTenant {
    /// Jobs, runs and schedules that this call ended.
    ended: u64,
    /// Jobs that this call deleted.
    jobs: u64,
    /// Runs that this call deleted.
    runs: u64,
    /// Jobs that have not ended yet.
    live_jobs: u64,
    /// Runs that are not over yet.
    live_runs: u64,
    /// Nothing is left.
    done: bool,
}

impl Tenants {
    pub(in crate::rest) fn new(views: Vec<TenantView>, limit: usize) -> Self {
        let next_after = views.last().filter(|_| views.len() == limit).map(|last| last.name.to_string());
        Self { tenants: views.into_iter().map(Tenant::from).collect(), next_after }
    }
}

impl From<TenantView> for Tenant {
    fn from(TenantView { name, usage, quota }: TenantView) -> Self {
        let rate = |rate: Option<Rate>| rate.map(|rate| rate.to_string());
        Self {
            name: name.to_string(),
            jobs: usage.live,
            ended: usage.ended,
            runs: usage.runs,
            stored_bytes: usage.stored_bytes,
            quota: TenantQuota {
                submit_rate: rate(quota.submit_rate),
                actor_rate: rate(quota.actor_rate),
                jobs: quota.jobs,
                runs: quota.runs,
                payload_bytes: quota.payload_bytes,
                stored_bytes: quota.stored_bytes,
            },
        }
    }
}

impl From<ErasedPart> for ErasedTenant {
    fn from(ErasedPart { ended, erased }: ErasedPart) -> Self {
        Self {
            ended,
            jobs: erased.jobs,
            runs: erased.runs,
            live_jobs: erased.live_jobs,
            live_runs: erased.live_runs,
            done: erased.done,
        }
    }
}
