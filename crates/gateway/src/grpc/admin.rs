//! The `Admin` service: policies, the audit trail, circuit breakers, tenants.

use lockgate_core::ids::TenantId;
use lockgate_core::request::Caller;
use lockgate_engine::{ApiError, ConfigText};
use lockgate_ports::SnapshotKind;
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
        answer(activated.map(wire::activated_policy))
    }

    async fn roll_back_policy(&self, request: Request<v1::RollBackPolicyRequest>) -> GrpcResult<v1::ActivatePolicyResponse> {
        let caller = caller(&request)?;
        let v1::RollBackPolicyRequest { snapshot, expected_version } = request.into_inner();
        let activated = self.0.engine.roll_back_policy(&caller, &snapshot, expected_version).await;
        answer(activated.map(wire::activated_policy))
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
        answer(self.0.engine.verify_audit().await.map(wire::verified))
    }

    async fn list_breakers(&self, _: Request<v1::ListBreakersRequest>) -> GrpcResult<v1::ListBreakersResponse> {
        Ok(Response::new(wire::breakers(&self.0.engine.breakers())))
    }

    async fn list_tenants(&self, request: Request<v1::ListTenantsRequest>) -> GrpcResult<v1::ListTenantsResponse> {
        let caller = caller(&request)?;
        answer(self.tenants(&caller, request.into_inner()).await)
    }

    async fn erase_tenant(&self, request: Request<v1::EraseTenantRequest>) -> GrpcResult<v1::EraseTenantResponse> {
        let caller = caller(&request)?;
        let v1::EraseTenantRequest { tenant, confirm } = request.into_inner();
        answer(self.0.engine.erase_tenant(&caller, &TenantId::from(tenant), &confirm).await.map(wire::erased))
    }
}

impl AdminService {
    async fn audit(&self, caller: &Caller, request: v1::ListAuditRequest) -> Result<v1::ListAuditResponse, ApiError> {
        let (rows, next_after) = self.0.engine.audit(caller, request.after, page(request.limit)).await?;
        Ok(wire::audit(&rows, next_after))
    }

    async fn tenants(&self, caller: &Caller, request: v1::ListTenantsRequest) -> Result<v1::ListTenantsResponse, ApiError> {
        let (after, limit) = (present(request.after).map(TenantId::from), page(request.limit));
        let views = self.0.engine.tenants(caller, after.as_ref(), limit).await?;
        Ok(wire::tenants(&views, limit))
    }
}
