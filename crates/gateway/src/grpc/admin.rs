//! The `Admin` service: policies, the audit trail, circuit breakers, tenants.

use lockgate_core::ids::TenantId;
use lockgate_core::rate::Rate;
use lockgate_core::request::Caller;
use lockgate_engine::{ApiError, ConfigText, TenantView};
use lockgate_ports::{Erased, SnapshotKind, Usage};
use lockgate_proto::v1;
use lockgate_proto::v1::admin_server::Admin;
use tonic::{Request, Response};

use super::lists::{page, present};
use super::{AdminService, GrpcResult, answer, caller};
use crate::{configs, wire};

#[tonic::async_trait]
impl Admin for AdminService {
    async fn activate_policy(&self, request: Request<v1::ActivatePolicyRequest>) -> GrpcResult<v1::ActivatePolicyResponse> {
        let caller = caller(&request)?;
        let v1::ActivatePolicyRequest { file, text, expected_version } = request.into_inner();
        let file = present(file).unwrap_or_else(|| configs::file_name(SnapshotKind::Policy));
        let activated = self.0.engine.activate_policy(&caller, ConfigText { file, text, expected: expected_version }).await;
        answer(activated.map(|activated| wire::activated(&activated)))
    }

    async fn roll_back_policy(&self, request: Request<v1::RollBackPolicyRequest>) -> GrpcResult<v1::ActivatePolicyResponse> {
        let caller = caller(&request)?;
        let v1::RollBackPolicyRequest { snapshot, expected_version } = request.into_inner();
        let activated = self.0.engine.roll_back_policy(&caller, &snapshot, expected_version).await;
        answer(activated.map(|activated| wire::activated(&activated)))
    }

    async fn get_policy(&self, request: Request<v1::GetPolicyRequest>) -> GrpcResult<v1::Policy> {
        let found = configs::named(&self.0.engine, SnapshotKind::Policy, &request.into_inner().snapshot).await;
        answer(found.map(v1::Policy::from))
    }

    async fn list_policies(&self, _: Request<v1::ListPoliciesRequest>) -> GrpcResult<v1::ListPoliciesResponse> {
        let known = configs::all(&self.0.engine, SnapshotKind::Policy).await;
        answer(known.map(|known| v1::ListPoliciesResponse { policies: known.into_iter().map(v1::Policy::from).collect() }))
    }

    async fn list_audit(&self, request: Request<v1::ListAuditRequest>) -> GrpcResult<v1::ListAuditResponse> {
        let caller = caller(&request)?;
        answer(self.audit(&caller, request.into_inner()).await)
    }

    async fn verify_audit(&self, _: Request<v1::VerifyAuditRequest>) -> GrpcResult<v1::VerifyAuditResponse> {
        answer(self.0.engine.verify_audit().await.map(|verified| v1::VerifyAuditResponse {
            blocks: verified.blocks,
            rows: verified.rows,
            unsealed: verified.unsealed,
            broken: verified.broken.map(|broken| broken.to_string()).unwrap_or_default(),
            losses: verified.losses,
        }))
    }

    async fn list_breakers(&self, _: Request<v1::ListBreakersRequest>) -> GrpcResult<v1::ListBreakersResponse> {
        let breakers = self.0.engine.breakers().iter().map(wire::breaker).collect();
        Ok(Response::new(v1::ListBreakersResponse { breakers }))
    }

    async fn list_tenants(&self, request: Request<v1::ListTenantsRequest>) -> GrpcResult<v1::ListTenantsResponse> {
        let caller = caller(&request)?;
        answer(self.tenants(&caller, request.into_inner()).await)
    }

    async fn erase_tenant(&self, request: Request<v1::EraseTenantRequest>) -> GrpcResult<v1::EraseTenantResponse> {
        let caller = caller(&request)?;
        let v1::EraseTenantRequest { tenant, confirm } = request.into_inner();
        answer(self.0.engine.erase_tenant(&caller, &TenantId::from(tenant), &confirm).await.map(|part| {
            let Erased { jobs, runs, live_jobs, live_runs, done } = part.erased;
            v1::EraseTenantResponse { ended: part.ended, jobs, runs, live_jobs, live_runs, done }
        }))
    }
}

impl AdminService {
    async fn audit(&self, caller: &Caller, wire: v1::ListAuditRequest) -> Result<v1::ListAuditResponse, ApiError> {
        let (rows, next_after) = self.0.engine.audit(caller, wire.after, page(wire.limit)).await?;
        Ok(v1::ListAuditResponse { rows: rows.iter().map(wire::audit_row).collect(), next_after })
    }

    async fn tenants(&self, caller: &Caller, wire: v1::ListTenantsRequest) -> Result<v1::ListTenantsResponse, ApiError> {
        let (after, limit) = (present(wire.after).map(TenantId::from), page(wire.limit));
        let views = self.0.engine.tenants(caller, after.as_ref(), limit).await?;
        let next_after = views.last().filter(|_| views.len() == limit).map(|last| last.name.to_string());
        let tenants = views.iter().map(tenant).collect();
        Ok(v1::ListTenantsResponse { tenants, next_after: next_after.unwrap_or_default() })
    }
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
