//! Policies: looked at, put in force, taken back, explained.

use axum::Json;
use axum::extract::{Path, State};
use lockgate_core::ids::JobId;
use lockgate_core::request::JobRequest;
use lockgate_ports::SnapshotKind;

use super::body::{Sent, Written};
use super::config;
use super::query::{ConfigParams, Params};
use super::request::{ConfigBody, JobBody, RollbackBody};
use super::views::{Activated, Config, Explained, Policies};
use super::{Answer, By};
use crate::{Shared, configs};

/// The id of a job that is only asked about.
const UNNAMED: &str = "unnamed";

/// The policy in force.
#[utoipa::path(get, path = "/v1/policy", responses((status = 200, body = Config)))]
pub(super) async fn get(State(shared): State<Shared>) -> Answer<Json<Config>> {
    Ok(Json(Config::from(configs::in_force(&shared.engine, SnapshotKind::Policy).await?)))
}

/// Check a policy and put it in force. Answers when nothing that it denies starts any more.
///
/// Either the policy itself, or a JSON object with the policy as text. A policy with faults is refused with all of them,
/// and the one in force stays.
#[utoipa::path(put, path = "/v1/policy", params(ConfigParams),
    request_body(content((String = "application/yaml"), (String = "text/yaml"), (ConfigBody = "application/json"))),
    responses((status = 200, body = Activated)))]
pub(super) async fn put(
    State(shared): State<Shared>,
    By(caller): By,
    Params(params): Params<ConfigParams>,
    sent: Written<ConfigBody>,
) -> Answer<Json<Activated>> {
    config::activate(&shared, &caller, SnapshotKind::Policy, config::text(SnapshotKind::Policy, params, sent)?).await
}

/// Put an earlier policy in force again.
#[utoipa::path(post, path = "/v1/policy/rollback", request_body = RollbackBody,
    responses((status = 200, body = Activated)))]
pub(super) async fn roll_back(
    State(shared): State<Shared>,
    By(caller): By,
    Sent(body): Sent<RollbackBody>,
) -> Answer<Json<Activated>> {
    config::take_back(&shared, &caller, SnapshotKind::Policy, &body).await
}

/// List policies that are or were in force, the latest activation first.
#[utoipa::path(get, path = "/v1/policy/snapshots", responses((status = 200, body = Policies)))]
pub(super) async fn snapshots(State(shared): State<Shared>) -> Answer<Json<Policies>> {
    Ok(Json(Policies::from(configs::all(&shared.engine, SnapshotKind::Policy).await?)))
}

/// One policy with its text.
#[utoipa::path(get, path = "/v1/policy/snapshots/{id}", params(("id" = String, Path)),
    responses((status = 200, body = Config)))]
pub(super) async fn snapshot(State(shared): State<Shared>, Path(id): Path<String>) -> Answer<Json<Config>> {
    config::find(&shared, SnapshotKind::Policy, &id).await
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
