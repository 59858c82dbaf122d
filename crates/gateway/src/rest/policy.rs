//! Policies: looked at, put in force, taken back, explained.

use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;
use lockgate_core::ids::JobId;
use lockgate_core::request::JobRequest;
use lockgate_engine::{ApiError, PolicyText};

use super::body::{Sent, Written};
use super::problem::Problem;
use super::query::{Params, PolicyParams};
use super::request::{JobBody, PolicyBody, RollbackBody};
use super::views::{Activated, Explained, Policies, Policy};
use super::{Answer, By};
use crate::Shared;
use crate::policies::{self, FILE_DEFAULT};

/// The id of a job that is only asked about.
const UNNAMED: &str = "unnamed";

/// The policy in force.
#[utoipa::path(get, path = "/v1/policy", responses((status = 200, body = Policy)))]
pub(super) async fn get(State(shared): State<Shared>) -> Answer<Json<Policy>> {
    Ok(Json(Policy::from(policies::in_force(&shared.engine).await?)))
}

/// Check a policy and put it in force. Answers when nothing that it denies starts any more.
///
/// Either the policy itself, or a JSON object with the policy as text. A policy with faults is refused with all of them,
/// and the one in force stays.
#[utoipa::path(put, path = "/v1/policy", params(PolicyParams),
    request_body(content((String = "application/yaml"), (String = "text/yaml"), (PolicyBody = "application/json"))),
    responses((status = 200, body = Activated)))]
pub(super) async fn put(
    State(shared): State<Shared>,
    By(caller): By,
    Params(params): Params<PolicyParams>,
    sent: Written<PolicyBody>,
) -> Answer<Json<Activated>> {
    let (file, expected) = params.read()?;
    let new = match sent {
        Written::Yaml(text) => PolicyText { file: file.unwrap_or_else(|| FILE_DEFAULT.into()), text, expected },
        Written::Json(body) => PolicyText {
            file: body.file.or(file).unwrap_or_else(|| FILE_DEFAULT.into()),
            text: body.text,
            expected: body.expected_version.or(expected),
        },
    };
    Ok(Json(Activated::from(shared.engine.activate_policy(&caller, new).await?)))
}

/// Put an earlier policy in force again.
#[utoipa::path(post, path = "/v1/policy/rollback", request_body = RollbackBody,
    responses((status = 200, body = Activated)))]
pub(super) async fn roll_back(
    State(shared): State<Shared>,
    By(caller): By,
    Sent(body): Sent<RollbackBody>,
) -> Answer<Json<Activated>> {
    let activated = shared.engine.roll_back_policy(&caller, &body.snapshot, body.expected_version).await?;
    Ok(Json(Activated::from(activated)))
}

/// List policies that are or were in force, the latest activation first.
#[utoipa::path(get, path = "/v1/policy/snapshots", responses((status = 200, body = Policies)))]
pub(super) async fn snapshots(State(shared): State<Shared>) -> Answer<Json<Policies>> {
    Ok(Json(Policies::from(policies::all(&shared.engine).await?)))
}

/// One policy with its text.
#[utoipa::path(get, path = "/v1/policy/snapshots/{id}", params(("id" = String, Path)),
    responses((status = 200, body = Policy)))]
pub(super) async fn snapshot(State(shared): State<Shared>, Path(id): Path<String>) -> Answer<Json<Policy>> {
    match policies::snapshot(&shared.engine, &id).await {
        Ok(known) => Ok(Json(Policy::from(known))),
        // The path is the name of a thing; that it names nothing is not a fault of the request's form.
        Err(error @ ApiError::Invalid(_)) => Err(Problem::new(StatusCode::NOT_FOUND, "not_found", error)),
        Err(error) => Err(error.into()),
    }
}

/// Why a job would get the verdict it would get. Nothing is submitted, nothing is counted.
#[utoipa::path(post, path = "/v1/policy/explain", request_body = JobBody, responses((status = 200, body = Explained)))]
pub(super) async fn explain(
    State(shared): State<Shared>,
    By(caller): By,
    Sent(job): Sent<JobBody>,
) -> Answer<Json<Explained>> {
    let request = JobRequest::check(job.read()?, &caller, || JobId::from(UNNAMED))?;
    Ok(Json(Explained::from(&shared.engine.explain_policy(&request).await?)))
}
