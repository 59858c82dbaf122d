//! Policies: looked at, put in force, taken back, explained.

use axum::Json;
use axum::extract::{Path, State};
use lockgate_api::body::{ConfigBody, JobBody, RollbackBody};
use lockgate_api::explanation_to_wire;
use lockgate_api::view::{Activated, Config, Explained, Policies};
use lockgate_core::ids::JobId;
use lockgate_core::request::JobRequest;
use lockgate_ports::SnapshotKind;

use super::body::{Sent, YamlOrJson};
use super::config;
use super::query::{ConfigParams, Params};
use super::{CallerExtractor, RouteResult};
use crate::{ServiceContext, configs};

/// The id of a job that is only asked about.
const UNNAMED: &str = "unnamed";

/// Return the policy in force.
#[utoipa::path(get, path = "/v1/policy", operation_id = "get_policy",
    responses((status = 200, description = "The policy", body = Config)))]
pub(super) async fn get(State(shared): State<ServiceContext>) -> RouteResult<Json<Config>> {
    Ok(Json(config::view(configs::in_force(&shared.engine, SnapshotKind::Policy).await?)))
}

/// Check a policy and put it in force. Answers when nothing that it denies starts any more.
///
/// Either the policy itself, or a JSON object with the policy as text. A policy with faults is refused with all of them,
/// and the one in force stays.
#[utoipa::path(put, path = "/v1/policy", operation_id = "put_policy", params(ConfigParams),
    request_body(content((String = "application/yaml"), (String = "text/yaml"), (ConfigBody = "application/json"))),
    responses((status = 200, description = "What is in force now", body = Activated)))]
pub(super) async fn put(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Params(params): Params<ConfigParams>,
    sent: YamlOrJson<ConfigBody>,
) -> RouteResult<Json<Activated>> {
    config::activate(&shared, &caller, SnapshotKind::Policy, config::text(SnapshotKind::Policy, params, sent)?).await
}

/// Put an earlier policy in force again.
#[utoipa::path(post, path = "/v1/policy/rollback", operation_id = "roll_back_policy", request_body = RollbackBody,
    responses((status = 200, description = "What is in force now", body = Activated)))]
pub(super) async fn roll_back(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Sent(body): Sent<RollbackBody>,
) -> RouteResult<Json<Activated>> {
    config::take_back(&shared, &caller, SnapshotKind::Policy, &body).await
}

/// List policies that are or were in force, the latest activation first.
#[utoipa::path(get, path = "/v1/policy/snapshots", operation_id = "list_policy_snapshots",
    responses((status = 200, description = "The policies, without their texts", body = Policies)))]
pub(super) async fn snapshots(State(shared): State<ServiceContext>) -> RouteResult<Json<Policies>> {
    let policies = configs::all(&shared.engine, SnapshotKind::Policy).await?.into_iter().map(config::view).collect();
    Ok(Json(Policies { policies }))
}

/// Return one policy with its text.
#[utoipa::path(get, path = "/v1/policy/snapshots/{id}", operation_id = "get_policy_snapshot", params(("id" = String, Path)),
    responses((status = 200, description = "The policy", body = Config)))]
pub(super) async fn snapshot(State(shared): State<ServiceContext>, Path(id): Path<String>) -> RouteResult<Json<Config>> {
    config::find(&shared, SnapshotKind::Policy, &id).await
}

/// Explain the verdict that a job would get. Nothing is submitted, nothing is counted.
#[utoipa::path(post, path = "/v1/policy/explain", operation_id = "explain_policy", request_body = JobBody,
    responses((status = 200, description = "The verdict, and every rule that was examined", body = Explained)))]
pub(super) async fn explain(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Sent(job): Sent<JobBody>,
) -> RouteResult<Json<Explained>> {
    let request = JobRequest::check(job.read()?, &caller, || JobId::from(UNNAMED))?;
    Ok(Json(Explained::from(explanation_to_wire(&shared.engine.explain_policy(&request).await?))))
}
