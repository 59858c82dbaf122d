//! Workflows: definitions, and runs of them.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::sse::Event as SseEvent;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use lockgate_api::body::{CancelRunBody, DagBody, RerunBody, ResolveBody, StartBody};
use lockgate_api::run_head;
use lockgate_api::view::{Dag, Dags, Run, RunEvent, Runs, StartedRun, StoredDag};
use lockgate_core::dag::NodeKey;
use lockgate_core::ids::RunId;
use lockgate_core::request::Caller;
use lockgate_engine::{RunOrder, StartRun};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::body::{Maybe, NoBody, Sent, YamlOrJson};
use super::idempotency::IdempotencyKey;
use super::listen::{ResumePoint, sent};
use super::query::{DagParams, EventParams, Params, RunParams};
use super::{CallerExtractor, RouteResult, with_status};
use crate::dags::{self, FILE};
use crate::follow::follow;
use crate::{ServiceContext, wire};

/// Check a definition and store it as the next version of its name.
///
/// Either the file itself, or a JSON object with its text. A file with faults is refused with all of them.
#[utoipa::path(post, path = "/v1/dags", operation_id = "put_dag",
    request_body(content((String = "application/yaml"), (String = "text/yaml"), (DagBody = "application/json"))),
    responses((status = 200, description = "The version that is stored", body = StoredDag)))]
pub(super) async fn put(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    sent: YamlOrJson<DagBody>,
) -> RouteResult<Json<StoredDag>> {
    let (file, text) = match sent {
        YamlOrJson::Yaml(text) => (None, text),
        YamlOrJson::Json(body) => (body.file, body.text),
    };
    let view = shared.engine.put_dag(&caller, file.as_deref().unwrap_or(FILE), &text).await?;
    Ok(Json(wire::stored_dag(&view).into()))
}

/// List the latest version of each DAG.
#[utoipa::path(get, path = "/v1/dags", operation_id = "list_dags",
    responses((status = 200, description = "The latest versions, without their texts", body = Dags)))]
pub(super) async fn list(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
) -> RouteResult<Json<Dags>> {
    Ok(Json(wire::dags(&shared.engine.dags(&caller).await?).into()))
}

/// Return one DAG with its text: the latest version, or the one that is named.
#[utoipa::path(get, path = "/v1/dags/{name}", operation_id = "get_dag", params(("name" = String, Path), DagParams),
    responses((status = 200, description = "The DAG", body = Dag)))]
pub(super) async fn get(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Path(name): Path<String>,
    Params(params): Params<DagParams>,
) -> RouteResult<Json<Dag>> {
    Ok(Json(wire::dag(&shared.engine.dag(&caller, &name, params.version()?).await?).into()))
}

/// Start a run of a DAG.
#[utoipa::path(post, path = "/v1/runs", operation_id = "start_run", request_body = StartBody,
    params(("Idempotency-Key" = Option<String>, Header, description = "The same as `idempotency_key`")),
    responses(
        (status = 201, description = "Started", body = StartedRun),
        (status = 200, description = "The idempotency key had started this run before", body = StartedRun),
    ))]
pub(super) async fn start(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    key: IdempotencyKey,
    Sent(mut body): Sent<StartBody>,
) -> RouteResult<Response> {
    key.put_into(&mut body.idempotency_key)?;
    let StartBody { dag, version, params, idempotency_key, fresh } = body;
    let start = StartRun { dag, version, params: Value::Object(map(params)?), idempotency_key, fresh };
    let started = shared.engine.start_run(&caller, start).await?;
    let status = if started.existing { StatusCode::OK } else { StatusCode::CREATED };
    Ok(with_status(status, StartedRun::from(wire::started(started))))
}

/// List runs, newest first, without their nodes.
#[utoipa::path(get, path = "/v1/runs", operation_id = "list_runs", params(RunParams),
    responses((status = 200, description = "One page of runs", body = Runs)))]
pub(super) async fn runs(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Params(params): Params<RunParams>,
) -> RouteResult<Json<Runs>> {
    let listing = shared.engine.runs(&caller, params.query(&caller)?).await?;
    Ok(Json(wire::runs(&listing).into()))
}

/// Return one run with its nodes.
#[utoipa::path(get, path = "/v1/runs/{id}", operation_id = "get_run", params(("id" = String, Path)),
    responses((status = 200, description = "The run", body = Run)))]
pub(super) async fn run(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Path(id): Path<String>,
) -> RouteResult<Json<Run>> {
    let view = shared.engine.run_view(&caller, &RunId::from(id)).await?;
    Ok(Json(Run::whole(&view.run, &view.dag)))
}

/// The run as a drawing: its nodes, what they wait for, and how far each got.
#[utoipa::path(get, path = "/v1/runs/{id}/graph", operation_id = "get_run_graph", params(("id" = String, Path)),
    responses((status = 200, description = "The drawing", body = String, content_type = "image/svg+xml")))]
pub(super) async fn graph(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Path(id): Path<String>,
) -> RouteResult<Response> {
    let view = shared.engine.run_view(&caller, &RunId::from(id)).await?;
    let state = |node| view.run.nodes.get(&NodeKey::of(node)).map(|run| run.state);
    Ok(([(CONTENT_TYPE, "image/svg+xml")], view.dag.svg(state)).into_response())
}

/// Follow a run: first what changed after the version seen last, then live, until the run is over.
///
/// `id:` is the run's version. Each event has the run and the nodes that changed since the event before.
#[utoipa::path(get, path = "/v1/runs/{id}/events", operation_id = "watch_run",
    params(("id" = String, Path), ("Last-Event-ID" = Option<i64>, Header), EventParams),
    responses(
        (status = 200, description = "Frames; the data is a `Run` with the nodes that changed", body = String,
            content_type = "text/event-stream"),
        (status = 204, description = "The run is over and everything was seen: do not come back"),
    ))]
pub(super) async fn events(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Path(id): Path<String>,
    Params(params): Params<EventParams>,
    headers: HeaderMap,
) -> RouteResult<Response> {
    let id = RunId::from(id);
    let ResumePoint { after, resumed } = ResumePoint::of(&headers, &params)?;
    // Browsers come back for ever after a stream has ended; 204 is how they are told not to.
    if resumed {
        let head = shared.engine.run_head(&caller, &id).await?;
        if head.state.is_over() && head.version <= after {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
    }
    let watch = shared.engine.watch_run(&caller, &id, after).await?;
    let event = |(run, dag): (lockgate_core::dag::Run, Arc<lockgate_core::dag::Dag>)| {
        SseEvent::default().id(run.head.version.to_string()).json_data(RunEvent::of(&run, &dag)).ok()
    };
    Ok(sent(follow(watch, shared.closing), event))
}

/// Cancel a run.
///
/// No further node starts, nodes under way are stopped, and finished work is compensated if that is asked for.
#[utoipa::path(post, path = "/v1/runs/{id}/cancel", operation_id = "cancel_run", params(("id" = String, Path)),
    request_body = CancelRunBody, responses((status = 200, description = "The run, without its nodes", body = Run)))]
pub(super) async fn cancel(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Path(id): Path<String>,
    Maybe(body): Maybe<CancelRunBody>,
) -> RouteResult<Json<Run>> {
    let order = RunOrder::Cancel { compensate: body.compensate, note: body.reason.map(Into::into) };
    change(&shared, &caller, id, order).await
}

/// Pause a run: no further node starts until it is resumed. Nodes under way go on.
#[utoipa::path(post, path = "/v1/runs/{id}/pause", operation_id = "pause_run", params(("id" = String, Path)),
    responses((status = 200, description = "The run, without its nodes", body = Run)))]
pub(super) async fn pause(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Path(id): Path<String>,
    Maybe(NoBody {}): Maybe<NoBody>,
) -> RouteResult<Json<Run>> {
    change(&shared, &caller, id, RunOrder::Pause).await
}

/// Resume a paused run.
#[utoipa::path(post, path = "/v1/runs/{id}/resume", operation_id = "resume_run", params(("id" = String, Path)),
    responses((status = 200, description = "The run, without its nodes", body = Run)))]
pub(super) async fn resume(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Path(id): Path<String>,
    Maybe(NoBody {}): Maybe<NoBody>,
) -> RouteResult<Json<Run>> {
    change(&shared, &caller, id, RunOrder::Resume).await
}

/// Run some nodes and all their descendants again. The outputs of the others are kept.
#[utoipa::path(post, path = "/v1/runs/{id}/rerun", operation_id = "rerun_run", params(("id" = String, Path)),
    request_body = RerunBody, responses((status = 200, description = "The run, without its nodes", body = Run)))]
pub(super) async fn rerun(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Path(id): Path<String>,
    Sent(body): Sent<RerunBody>,
) -> RouteResult<Json<Run>> {
    let params = map(body.params)?;
    change(&shared, &caller, id, RunOrder::Rerun { from: body.from, params, fresh: body.fresh }).await
}

/// Resolve a compensation that is stuck: mark it as done, or try it again.
#[utoipa::path(post, path = "/v1/runs/{id}/resolve", operation_id = "resolve_compensation", params(("id" = String, Path)),
    request_body = ResolveBody, responses((status = 200, description = "The run, without its nodes", body = Run)))]
pub(super) async fn resolve(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Path(id): Path<String>,
    Sent(body): Sent<ResolveBody>,
) -> RouteResult<Json<Run>> {
    change(&shared, &caller, id, dags::resolve(body.node, body.item, body.retry)).await
}

/// None at all is an empty map.
fn map(params: Option<Box<RawValue>>) -> RouteResult<Map<String, Value>> {
    params.map_or_else(|| Ok(Map::new()), |raw| dags::params(raw.get()).map_err(|error| vec![error].into()))
}

async fn change(shared: &ServiceContext, caller: &Caller, id: String, order: RunOrder) -> RouteResult<Json<Run>> {
    Ok(Json(Run::head(run_head(&shared.engine.order_run(caller, &RunId::from(id), order).await?))))
}
