//! The state of the whole: workers, queues, circuit breakers.

use axum::Json;
use axum::extract::State;
use lockgate_api::view::{Breakers, Queues, Workers};

use super::RouteResult;
use super::query::{Params, QueueParams, WorkerParams};
use crate::{ServiceContext, wire};

/// List workers that are connected, or were a moment ago.
#[utoipa::path(get, path = "/v1/workers", operation_id = "list_workers", params(WorkerParams),
    responses((status = 200, description = "The workers", body = Workers)))]
pub(super) async fn workers(
    State(shared): State<ServiceContext>,
    Params(params): Params<WorkerParams>,
) -> RouteResult<Json<Workers>> {
    let labels = params.labels()?;
    let mut workers = shared.engine.workers();
    workers.retain(|view| {
        labels.iter().all(|(name, value)| view.profile.labels.get(&**name).is_some_and(|is| **is == **value))
    });
    Ok(Json(wire::workers(&workers).into()))
}

/// List queues of waiting jobs, the longest first, and totals.
#[utoipa::path(get, path = "/v1/queues", operation_id = "list_queues", params(QueueParams),
    responses((status = 200, description = "The queues and the totals", body = Queues)))]
pub(super) async fn queues(
    State(shared): State<ServiceContext>,
    Params(params): Params<QueueParams>,
) -> RouteResult<Json<Queues>> {
    let mut queues = shared.engine.queues().await?;
    queues.lanes.retain(|view| params.wants(view));
    Ok(Json(wire::queues(queues).into()))
}

/// List the circuit breakers of a remote safety kernel.
#[utoipa::path(get, path = "/v1/breakers", operation_id = "list_breakers",
    responses((status = 200, description = "The breakers; none while the kernel runs in this process", body = Breakers)))]
pub(super) async fn breakers(State(shared): State<ServiceContext>) -> Json<Breakers> {
    Json(wire::breakers(&shared.engine.breakers()).into())
}
