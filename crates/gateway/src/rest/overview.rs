//! The state of the whole: workers, queues, circuit breakers.

use axum::Json;
use axum::extract::State;

use super::Answer;
use super::query::{Params, QueueParams, WorkerParams};
use super::views::{Breakers, Queues, Workers};
use crate::Shared;

/// Workers that are connected, or were a moment ago.
#[utoipa::path(get, path = "/v1/workers", params(WorkerParams), responses((status = 200, body = Workers)))]
pub(super) async fn workers(State(shared): State<Shared>, Params(params): Params<WorkerParams>) -> Answer<Json<Workers>> {
    let labels = params.labels()?;
    let mut workers = shared.engine.workers();
    workers.retain(|view| {
        labels.iter().all(|(name, value)| view.profile.labels.get(&**name).is_some_and(|is| **is == **value))
    });
    Ok(Json(Workers::from(workers)))
}

/// Ready queues, deepest first, and totals.
#[utoipa::path(get, path = "/v1/queues", params(QueueParams), responses((status = 200, body = Queues)))]
pub(super) async fn queues(State(shared): State<Shared>, Params(params): Params<QueueParams>) -> Answer<Json<Queues>> {
    let mut queues = shared.engine.queues().await?;
    queues.lanes.retain(|view| params.wants(view));
    Ok(Json(Queues::from(queues)))
}

/// Circuit breakers before a remote safety kernel.
#[utoipa::path(get, path = "/v1/breakers", responses((status = 200, body = Breakers)))]
pub(super) async fn breakers(State(shared): State<Shared>) -> Json<Breakers> {
    Json(Breakers::from(shared.engine.breakers()))
}
