//! Pools and workers as operators see them.

use axum::Json;
use axum::extract::{Path, State};
use lockgate_api::view::{DrainedWorker, PoolChanged, Pools};
use lockgate_core::ids::{PoolName, WorkerId};
use lockgate_core::pools::Closed;
use lockgate_core::request::Caller;
use lockgate_ports::SnapshotKind;

use super::body::{Maybe, NoBody};
use super::{CallerExtractor, RouteResult};
use crate::{ServiceContext, configs, wire};

/// List the pools with their load.
#[utoipa::path(get, path = "/v1/pools", operation_id = "list_pools",
    responses((status = 200, description = "The pools", body = Pools)))]
pub(super) async fn list(State(shared): State<ServiceContext>) -> RouteResult<Json<Pools>> {
    let in_force = configs::in_force(&shared.engine, SnapshotKind::Pools).await?;
    Ok(Json(wire::pools(&shared.engine.pools().await?, &in_force.snapshot).into()))
}

/// Pause a pool: its workers get no new jobs, and its jobs wait.
///
/// Answers once no new attempt starts there.
#[utoipa::path(post, path = "/v1/pools/{pool}/pause", operation_id = "pause_pool", params(("pool" = String, Path)),
    responses((status = 200, description = "The pool as it is now", body = PoolChanged)))]
pub(super) async fn pause(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Path(pool): Path<String>,
    Maybe(NoBody {}): Maybe<NoBody>,
) -> RouteResult<Json<PoolChanged>> {
    change(&shared, &caller, pool, Some(Closed::Paused)).await
}

/// Open a paused or draining pool.
#[utoipa::path(post, path = "/v1/pools/{pool}/resume", operation_id = "resume_pool", params(("pool" = String, Path)),
    responses((status = 200, description = "The pool as it is now", body = PoolChanged)))]
pub(super) async fn resume(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Path(pool): Path<String>,
    Maybe(NoBody {}): Maybe<NoBody>,
) -> RouteResult<Json<PoolChanged>> {
    change(&shared, &caller, pool, None).await
}

/// Drain a pool: its workers get no new jobs, and its jobs go to the other pools of their topic.
///
/// Jobs of a topic without another pool wait. Answers once no new attempt starts there; `busy` says how many still run.
#[utoipa::path(post, path = "/v1/pools/{pool}/drain", operation_id = "drain_pool", params(("pool" = String, Path)),
    responses((status = 200, description = "The pool as it is now", body = PoolChanged)))]
pub(super) async fn drain(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Path(pool): Path<String>,
    Maybe(NoBody {}): Maybe<NoBody>,
) -> RouteResult<Json<PoolChanged>> {
    change(&shared, &caller, pool, Some(Closed::Draining)).await
}

async fn change(
    shared: &ServiceContext,
    caller: &Caller,
    pool: String,
    state: Option<Closed>,
) -> RouteResult<Json<PoolChanged>> {
    let name = PoolName::from(pool);
    shared.engine.set_pool_state(caller, &name, state).await?;
    Ok(Json(wire::pool_changed(shared.engine.pool(&name).await.as_ref()).into()))
}

/// Ask a worker to finish the jobs that it holds and to end.
#[utoipa::path(post, path = "/v1/workers/{id}/drain", operation_id = "drain_worker", params(("id" = String, Path)),
    responses((status = 200, description = "How many sessions of the worker were told", body = DrainedWorker)))]
pub(super) async fn drain_worker(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Path(id): Path<String>,
    Maybe(NoBody {}): Maybe<NoBody>,
) -> RouteResult<Json<DrainedWorker>> {
    let drained = wire::drained(shared.engine.drain_worker(&caller, &WorkerId::from(id.clone())).await?);
    Ok(Json(DrainedWorker { worker_id: id, sessions: drained.sessions }))
}
