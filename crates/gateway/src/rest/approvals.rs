//! People answer what policy asks, and let results go.

use axum::Json;
use axum::extract::State;
use lockgate_api::ToWire;
use lockgate_api::body::{AnswerBody, NoteBody};
use lockgate_api::view::{Answered, Approvals, Changed};
use lockgate_core::ids::JobId;
use lockgate_core::job::Answer as Given;
use lockgate_core::request::Caller;

use super::body::{Maybe, Sent};
use super::query::{PageParams, Params};
use super::{CallerExtractor, JobPath, RouteResult};
use crate::{ServiceContext, queries, wire};

/// List the jobs of the caller's tenant that wait for approval, oldest first.
#[utoipa::path(get, path = "/v1/approvals", operation_id = "list_approvals", params(PageParams),
    responses((status = 200, description = "One page of jobs that wait for approval", body = Approvals)))]
pub(super) async fn list(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Params(params): Params<PageParams>,
) -> RouteResult<Json<Approvals>> {
    let (cursor, limit) = params.page()?;
    let (jobs, next) = shared.engine.approvals(&caller, cursor, limit).await?;
    Ok(Json(Approvals::from(wire::approvals(&jobs, !caller.sees_payloads, next))))
}

/// Approve a job.
///
/// A second approval of the same actor changes nothing, and the submitter cannot approve. A caller who may not read the
/// payload approves only with `acknowledge_hidden`.
#[utoipa::path(post, path = "/v1/jobs/{id}/approve", operation_id = "approve_job", params(("id" = String, Path)),
    request_body = AnswerBody,
    responses((status = 200, description = "The approvals so far and the state of the job", body = Answered)))]
pub(super) async fn approve(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    JobPath(id): JobPath,
    Sent(body): Sent<AnswerBody>,
) -> RouteResult<Json<Answered>> {
    answer(&shared, &caller, id, body, Given::Approve).await
}

/// Reject a job that waits for approval. It ends as DENIED.
#[utoipa::path(post, path = "/v1/jobs/{id}/reject", operation_id = "reject_job", params(("id" = String, Path)),
    request_body = AnswerBody,
    responses((status = 200, description = "The approvals so far and the state of the job", body = Answered)))]
pub(super) async fn reject(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    JobPath(id): JobPath,
    Sent(body): Sent<AnswerBody>,
) -> RouteResult<Json<Answered>> {
    answer(&shared, &caller, id, body, Given::Reject).await
}

async fn answer(
    shared: &ServiceContext,
    caller: &Caller,
    id: JobId,
    body: AnswerBody,
    given: Given,
) -> RouteResult<Json<Answered>> {
    let job = shared.engine.answer(caller, queries::answer(body, id, given)?).await?;
    Ok(Json(Answered::from(lockgate_api::answered(&job))))
}

/// Release a quarantined result.
#[utoipa::path(post, path = "/v1/jobs/{id}/release", operation_id = "release_result", params(("id" = String, Path)),
    request_body = Option<NoteBody>,
    responses((status = 200, description = "The state of the job", body = Changed)))]
pub(super) async fn release(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    JobPath(id): JobPath,
    Maybe(body): Maybe<NoteBody>,
) -> RouteResult<Json<Changed>> {
    let job = shared.engine.release(&caller, &id, body.note.map(Into::into)).await?;
    Ok(Json(Changed { job_id: id.to_string(), state: job.state().to_wire().into() }))
}
