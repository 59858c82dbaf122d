//! The `Admin` service: policies, the audit trail, circuit breakers.

use lockgate_core::request::Caller;
use lockgate_engine::{ApiError, ConfigText};
use lockgate_ports::SnapshotKind;
use lockgate_proto::v1;
use lockgate_proto::v1::admin_server::Admin;
use tonic::{Request, Response};

use super::lists::{page, present};
use super::{AdminService, Reply, answer, caller, convert};
use crate::configs;

#[tonic::async_trait]
impl Admin for AdminService {
    async fn activate_policy(&self, request: Request<v1::ActivatePolicyRequest>) -> Reply<v1::ActivatePolicyResponse> {
        let caller = caller(&request)?;
        let v1::ActivatePolicyRequest { file, text, expected_version } = request.into_inner();
        let file = present(file).unwrap_or_else(|| configs::file_name(SnapshotKind::Policy));
        let activated = self.0.engine.activate_policy(&caller, ConfigText { file, text, expected: expected_version }).await;
        answer(activated.map(|activated| convert::activated(&activated)))
    }

    async fn roll_back_policy(&self, request: Request<v1::RollBackPolicyRequest>) -> Reply<v1::ActivatePolicyResponse> {
        let caller = caller(&request)?;
        let v1::RollBackPolicyRequest { snapshot, expected_version } = request.into_inner();
        let activated = self.0.engine.roll_back_policy(&caller, &snapshot, expected_version).await;
        answer(activated.map(|activated| convert::activated(&activated)))
    }

    async fn get_policy(&self, request: Request<v1::GetPolicyRequest>) -> Reply<v1::Policy> {
        let found = configs::named(&self.0.engine, SnapshotKind::Policy, &request.into_inner().snapshot).await;
        answer(found.map(v1::Policy::from))
    }

    async fn list_policies(&self, _: Request<v1::ListPoliciesRequest>) -> Reply<v1::ListPoliciesResponse> {
        let known = configs::all(&self.0.engine, SnapshotKind::Policy).await;
        answer(known.map(|known| v1::ListPoliciesResponse { policies: known.into_iter().map(v1::Policy::from).collect() }))
    }

    async fn list_audit(&self, request: Request<v1::ListAuditRequest>) -> Reply<v1::ListAuditResponse> {
        let caller = caller(&request)?;
        answer(self.audit(&caller, request.into_inner()).await)
    }

    async fn verify_audit(&self, _: Request<v1::VerifyAuditRequest>) -> Reply<v1::VerifyAuditResponse> {
        answer(self.0.engine.verify_audit().await.map(|verified| v1::VerifyAuditResponse {
            blocks: verified.blocks,
            rows: verified.rows,
            unsealed: verified.unsealed,
            broken: verified.broken.map(|broken| broken.to_string()).unwrap_or_default(),
        }))
    }

    async fn list_breakers(&self, _: Request<v1::ListBreakersRequest>) -> Reply<v1::ListBreakersResponse> {
        let breakers = self.0.engine.breakers().iter().map(convert::breaker).collect();
        Ok(Response::new(v1::ListBreakersResponse { breakers }))
    }
}

impl AdminService {
    async fn audit(&self, caller: &Caller, wire: v1::ListAuditRequest) -> Result<v1::ListAuditResponse, ApiError> {
        let (rows, next_after) = self.0.engine.audit(caller, wire.after, page(wire.limit)).await?;
        Ok(v1::ListAuditResponse { rows: rows.iter().map(convert::audit_row).collect(), next_after })
    }
}
