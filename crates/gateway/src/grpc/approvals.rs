//! The `Approvals` service: people answer what policy asks, and let results go.

use lockgate_api::ToWire;
use lockgate_core::job::Answer;
use lockgate_core::request::Caller;
use lockgate_engine::ApiError;
use lockgate_proto::v1;
use lockgate_proto::v1::approvals_server::Approvals;
use tonic::Request;

use super::lists::{invalid, page, present};
use super::{ApprovalsService, GrpcResult, answer, caller};
use crate::{queries, wire};

#[tonic::async_trait]
impl Approvals for ApprovalsService {
    async fn list_approvals(&self, request: Request<v1::ListApprovalsRequest>) -> GrpcResult<v1::ListApprovalsResponse> {
        let caller = caller(&request)?;
        answer(self.list(&caller, request.into_inner()).await)
    }

    async fn approve(&self, request: Request<v1::AnswerApprovalRequest>) -> GrpcResult<v1::AnswerApprovalResponse> {
        let caller = caller(&request)?;
        answer(self.answer(&caller, request.into_inner(), Answer::Approve).await)
    }

    async fn reject(&self, request: Request<v1::AnswerApprovalRequest>) -> GrpcResult<v1::AnswerApprovalResponse> {
        let caller = caller(&request)?;
        answer(self.answer(&caller, request.into_inner(), Answer::Reject).await)
    }

    async fn release_output(&self, request: Request<v1::ReleaseOutputRequest>) -> GrpcResult<v1::ReleaseOutputResponse> {
        let caller = caller(&request)?;
        let v1::ReleaseOutputRequest { job_id, note } = request.into_inner();
        let note = present(note).map(Into::into);
        let released = self.0.engine.release(&caller, &job_id.into(), note).await;
        answer(released.map(|job| v1::ReleaseOutputResponse {
            job_id: job.request.job_id.to_string(),
            state: job.state().to_wire().into(),
        }))
    }
}

impl ApprovalsService {
    async fn list(&self, caller: &Caller, request: v1::ListApprovalsRequest) -> Result<v1::ListApprovalsResponse, ApiError> {
        let cursor = queries::cursor(&request.cursor).map_err(invalid)?;
        let (jobs, next) = self.0.engine.approvals(caller, cursor, page(request.limit)).await?;
        Ok(wire::approvals(&jobs, !caller.sees_payloads, next))
    }

    async fn answer(
        &self,
        caller: &Caller,
        wire: v1::AnswerApprovalRequest,
        given: Answer,
    ) -> Result<v1::AnswerApprovalResponse, ApiError> {
        let job_id = wire.job_id.as_str().into();
        let ballot = queries::answer(wire.into(), job_id, given).map_err(ApiError::Invalid)?;
        let job = self.0.engine.answer(caller, ballot).await?;
        Ok(lockgate_api::answered(&job))
    }
}
