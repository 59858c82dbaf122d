//! Tenants.

use lockgate_proto::v1;
use serde::Serialize;

use super::convert::present;

#[derive(Debug, Serialize)]
pub(crate) struct Tenants {
    pub(crate) tenants: Vec<Tenant>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Tenant {
    pub(crate) name: String,
    pub(crate) jobs: u64,
    pub(crate) ended: u64,
    pub(crate) runs: u64,
    pub(crate) stored_bytes: u64,
    pub(crate) quota: TenantQuota,
}

/// What is absent is not limited.
#[derive(Debug, Serialize)]
pub(crate) struct TenantQuota {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) submit_rate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) actor_rate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) jobs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) runs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) payload_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stored_bytes: Option<u64>,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct ErasedTenant {
    pub(crate) tenant: String,
    /// Jobs, runs and schedules that had not ended.
    pub(crate) ended: u64,
    pub(crate) jobs: u64,
    pub(crate) runs: u64,
}

impl ErasedTenant {
    pub(crate) fn add(&mut self, part: &v1::EraseTenantResponse) {
        self.ended += part.ended;
        self.jobs += part.jobs;
        self.runs += part.runs;
    }
}

impl From<v1::Tenant> for Tenant {
    fn from(tenant: v1::Tenant) -> Self {
        let quota = tenant.quota.unwrap_or_default();
        Self {
            name: tenant.name,
            jobs: tenant.jobs,
            ended: tenant.ended,
            runs: tenant.runs,
            stored_bytes: tenant.stored_bytes,
            quota: TenantQuota {
                submit_rate: present(quota.submit_rate),
                actor_rate: present(quota.actor_rate),
                jobs: quota.jobs,
                runs: quota.runs,
                payload_bytes: quota.payload_bytes,
                stored_bytes: quota.stored_bytes,
            },
        }
    }
}
