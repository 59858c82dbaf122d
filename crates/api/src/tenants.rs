//! Tenants.

use lockgate_proto::v1;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::present;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TenantList)]
pub struct Tenants {
    pub tenants: Vec<Tenant>,
    /// Where the list goes on, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_after: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Tenant {
    pub name: String,
    /// Jobs that have not ended.
    pub jobs: u64,
    /// Jobs ended and kept.
    pub ended: u64,
    /// Runs that are not over.
    pub runs: u64,
    /// Payloads and results that are kept.
    pub stored_bytes: u64,
    pub quota: TenantQuota,
}

/// What is absent is not limited.
#[derive(Debug, Serialize, ToSchema)]
pub struct TenantQuota {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submit_rate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor_rate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_bytes: Option<u64>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct ErasedTenant {
    /// Jobs, runs and schedules that this call ended.
    pub ended: u64,
    /// Jobs that this call deleted.
    pub jobs: u64,
    /// Runs that this call deleted.
    pub runs: u64,
    /// Jobs that have not ended yet.
    pub live_jobs: u64,
    /// Runs that are not over yet.
    pub live_runs: u64,
    /// Nothing is left.
    pub done: bool,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Erase)]
pub struct EraseBody {
    /// The name of the tenant once more: nothing of it comes back.
    pub confirm: String,
}

impl From<v1::ListTenantsResponse> for Tenants {
    fn from(wire: v1::ListTenantsResponse) -> Self {
        Self { tenants: wire.tenants.into_iter().map(Tenant::from).collect(), next_after: present(wire.next_after) }
    }
}

impl From<v1::Tenant> for Tenant {
    fn from(wire: v1::Tenant) -> Self {
        let v1::Tenant { name, jobs, ended, runs, stored_bytes, quota } = wire;
        Self { name, jobs, ended, runs, stored_bytes, quota: quota.unwrap_or_default().into() }
    }
}

impl From<v1::TenantQuota> for TenantQuota {
    fn from(wire: v1::TenantQuota) -> Self {
        Self {
            submit_rate: present(wire.submit_rate),
            actor_rate: present(wire.actor_rate),
            jobs: wire.jobs,
            runs: wire.runs,
            payload_bytes: wire.payload_bytes,
            stored_bytes: wire.stored_bytes,
        }
    }
}

impl From<v1::EraseTenantResponse> for ErasedTenant {
    fn from(wire: v1::EraseTenantResponse) -> Self {
        let v1::EraseTenantResponse { ended, jobs, runs, live_jobs, live_runs, done } = wire;
        Self { ended, jobs, runs, live_jobs, live_runs, done }
    }
}
