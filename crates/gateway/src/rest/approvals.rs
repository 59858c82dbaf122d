//! People answer what policy asks, and let results go.

use axum::Json;
use axum::extract::State;
use lockgate_core::ids::JobId;
use lockgate_core::job::Answer as Given;
use lockgate_core::request::Caller;

use super::body::{Maybe, Sent};
use super::query::{PageParams, Params};
use super::request::{AnswerBody, NoteBody};
use super::views::{Answered, Approvals, Changed};
use super::{Answer, By, JobPath};
use crate::Shared;

/// List open questions of the caller's tenant, oldest first.
#[utoipa::path(get, path = "/v1/approvals", params(PageParams), responses((status = 200, body = Approvals)))]
pub(super) async fn list(
    State(shared): State<Shared>,
    By(caller): By,
    Params(params): Params<PageParams>,
) -> Answer<Json<Approvals>> {
    let (cursor, limit) = params.page()?;
    let (jobs, next) = shared.engine.approvals(&caller, cursor, limit).await?;
    Ok(Json(Approvals::new(&jobs, !caller.sees_payloads, next)))
}

/// Agree that a job runs. Agreeing twice is agreeing once; the submitter cannot agree. A caller who may not see the payload
/// agrees only with `acknowledge_hidden`.
#[utoipa::path(post, path = "/v1/jobs/{id}/approve", params(("id" = String, Path)), request_body = AnswerBody,
    responses((status = 200, body = Answered)))]
pub(super) async fn approve(
    State(shared): State<Shared>,
    By(caller): By,
    JobPath(id): JobPath,
    Sent(body): Sent<AnswerBody>,
) -> Answer<Json<Answered>> {
    answer(&shared, &caller, id, body, Given::Approve).await
}

/// Refuse that a job runs. It ends as DENIED.
#[utoipa::path(post, path = "/v1/jobs/{id}/reject", params(("id" = String, Path)), request_body = AnswerBody,
    responses((status = 200, body = Answered)))]
pub(super) async fn reject(
    State(shared): State<Shared>,
    By(caller): By,
    JobPath(id): JobPath,
    Sent(body): Sent<AnswerBody>,
) -> Answer<Json<Answered>> {
    answer(&shared, &caller, id, body, Given::Reject).await
}

async fn answer(shared: &Shared, caller: &Caller, id: JobId, body: AnswerBody, given: Given) -> Answer<Json<Answered>> {
    let job = shared.engine.answer(caller, body.read(id, given)?).await?;
    Ok(Json(Answered::from(&job)))
}

/// Let a quarantined result go.
#[utoipa::path(post, path = "/v1/jobs/{id}/release", params(("id" = String, Path)), request_body = Option<NoteBody>,
    responses((status = 200, body = Changed)))]
pub(super) async fn release(
    State(shared): State<Shared>,
    By(caller): By,
    JobPath(id): JobPath,
    Maybe(body): Maybe<NoteBody>,
) -> Answer<Json<Changed>> {
    let job = shared.engine.release(&caller, &id, body.note.map(Into::into)).await?;
    Ok(Json(Changed { job_id: id.to_string(), state: job.state().as_str() }))
}
