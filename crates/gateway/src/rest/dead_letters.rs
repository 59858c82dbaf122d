//! Dead letters: look, replay, discard.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use lockgate_api::ToWire;
use lockgate_api::body::{DiscardBody, ReplayBody};
use lockgate_api::view::{Changed, DeadLetter, DeadLetters, Replayed};

use super::body::{Maybe, NoBody, Sent};
use super::problem::Problem;
use super::query::{DeadLetterParams, Params};
use super::request;
use super::{CallerExtractor, JobPath, RouteResult};
use crate::{ServiceContext, queries, wire};

/// List dead letters, newest first: those that are open, or those that were discarded.
#[utoipa::path(get, path = "/v1/dead-letters", operation_id = "list_dead_letters", params(DeadLetterParams),
    responses((status = 200, description = "One page of dead letters", body = DeadLetters)))]
pub(super) async fn list(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Params(params): Params<DeadLetterParams>,
) -> RouteResult<Json<DeadLetters>> {
    let (query, discarded) = params.query(&caller)?;
    let listing = queries::dead_letters(&shared.engine, &caller, query, discarded).await?;
    Ok(Json(DeadLetters::from(wire::dead_letters(&listing))))
}

/// Return the dead letter of one job.
#[utoipa::path(get, path = "/v1/dead-letters/{id}", operation_id = "get_dead_letter", params(("id" = String, Path)),
    responses((status = 200, description = "The dead letter", body = DeadLetter)))]
pub(super) async fn get(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    JobPath(id): JobPath,
) -> RouteResult<Json<DeadLetter>> {
    let job = shared.engine.job(&caller, &id).await?.job;
    let state = job.state();
    let none = || {
        let detail = format!("job {id:?} is {state} and has no dead letter");
        Problem::new(StatusCode::NOT_FOUND, "not_found", detail)
    };
    let letter = DeadLetter::of(&lockgate_api::job(&job, &shared.engine.defaults()));
    Ok(Json(letter.ok_or_else(none)?))
}

/// Give one dead job a new life.
#[utoipa::path(post, path = "/v1/dead-letters/{id}/replay", operation_id = "replay_dead_letter",
    params(("id" = String, Path)),
    responses((status = 200, description = "The state of the job", body = Changed)))]
pub(super) async fn replay_one(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    JobPath(id): JobPath,
    Maybe(NoBody {}): Maybe<NoBody>,
) -> RouteResult<Json<Changed>> {
    let job = shared.engine.replay_one(&caller, &id).await?;
    Ok(Json(Changed { job_id: id.to_string(), state: job.state().to_wire().into() }))
}

/// Say that a dead letter is not to be replayed. It leaves the list of open ones.
#[utoipa::path(post, path = "/v1/dead-letters/{id}/discard", operation_id = "discard_dead_letter",
    params(("id" = String, Path)), request_body = DiscardBody,
    responses((status = 200, description = "The state of the job, which stays", body = Changed)))]
pub(super) async fn discard(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    JobPath(id): JobPath,
    Sent(body): Sent<DiscardBody>,
) -> RouteResult<Json<Changed>> {
    let state = shared.engine.discard(&caller, &id, body.reason.into()).await?;
    Ok(Json(Changed { job_id: id.to_string(), state: state.to_wire().into() }))
}

/// Replay every dead letter of the caller's tenant that matches. An empty object matches all.
#[utoipa::path(post, path = "/v1/dead-letters:replay", operation_id = "replay_dead_letters", request_body = ReplayBody,
    responses((status = 200, description = "How many were selected and replayed", body = Replayed)))]
pub(super) async fn replay_many(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Sent(body): Sent<ReplayBody>,
) -> RouteResult<Json<Replayed>> {
    let request = request::replay(body, &caller)?;
    Ok(Json(Replayed::from(wire::replayed(&shared.engine.replay(&caller, request).await?))))
}
