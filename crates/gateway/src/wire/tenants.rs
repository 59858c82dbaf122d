//! Tenants.

use lockgate_core::rate::Rate;
use lockgate_engine::{ErasedPart, TenantView};
use lockgate_ports::{Erased, Usage};
use lockgate_proto::v1;

pub(crate) fn tenants(views: &[TenantView], limit: usize) -> v1::ListTenantsResponse {
    let next_after = views.last().filter(|_| views.len() == limit).map(|last| last.name.to_string());
    v1::ListTenantsResponse { tenants: views.iter().map(tenant).collect(), next_after: next_after.unwrap_or_default() }
}

fn tenant(view: &TenantView) -> v1::Tenant {
    let Usage { live, ended, runs, stored_bytes } = view.usage;
    let quota = &view.quota;
    let rate = |rate: Option<Rate>| rate.map(|rate| rate.to_string()).unwrap_or_default();
    let quota = v1::TenantQuota {
        submit_rate: rate(quota.submit_rate),
        actor_rate: rate(quota.actor_rate),
        jobs: quota.jobs,
        runs: quota.runs,
        payload_bytes: quota.payload_bytes,
        stored_bytes: quota.stored_bytes,
    };
    v1::Tenant { name: view.name.to_string(), jobs: live, ended, runs, stored_bytes, quota: Some(quota) }
}

pub(crate) fn erased(part: ErasedPart) -> v1::EraseTenantResponse {
    let Erased { jobs, runs, live_jobs, live_runs, done } = part.erased;
    v1::EraseTenantResponse { ended: part.ended, jobs, runs, live_jobs, live_runs, done }
}
