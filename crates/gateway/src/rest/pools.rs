//! Pools and workers as operators see them.

use axum::Json;
use axum::extract::{Path, State};
use lockgate_core::ids::{PoolName, WorkerId};
use lockgate_core::pools::Closed;
use lockgate_core::request::Caller;
use lockgate_ports::SnapshotKind;

use super::body::{Maybe, NoBody};
use super::views::{DrainedWorker, PoolChanged, Pools};
use super::{Answer, By};
use crate::{Shared, configs};

/// List the pools and what goes on in them.
#[utoipa::path(get, path = "/v1/pools", operation_id = "list_pools", responses((status = 200, body = Pools)))]
pub(super) async fn list(State(shared): State<Shared>) -> Answer<Json<Pools>> {
    let in_force = configs::in_force(&shared.engine, SnapshotKind::Pools).await?;
    Ok(Json(Pools::new(&shared.engine.pools().await?, &in_force.snapshot)))
}

/// Stop giving the pool's workers jobs. Its jobs wait for it. Answers when nothing new starts there.
#[utoipa::path(post, path = "/v1/pools/{pool}/pause", params(("pool" = String, Path)),
    responses((status = 200, body = PoolChanged)))]
pub(super) async fn pause(
    State(shared): State<Shared>,
    By(caller): By,
    Path(pool): Path<String>,
    Maybe(NoBody {}): Maybe<NoBody>,
) -> Answer<Json<PoolChanged>> {
    change(&shared, &caller, pool, Some(Closed::Paused)).await
}

/// Give the pool's workers jobs again.
#[utoipa::path(post, path = "/v1/pools/{pool}/resume", params(("pool" = String, Path)),
    responses((status = 200, body = PoolChanged)))]
pub(super) async fn resume(
    State(shared): State<Shared>,
    By(caller): By,
    Path(pool): Path<String>,
    Maybe(NoBody {}): Maybe<NoBody>,
) -> Answer<Json<PoolChanged>> {
    change(&shared, &caller, pool, None).await
}

/// Stop giving the pool's workers jobs. Its jobs go to the other pools of their topic, if there are any. Answers when
/// nothing new starts there; `busy` says how much still runs.
#[utoipa::path(post, path = "/v1/pools/{pool}/drain", operation_id = "drain_pool", params(("pool" = String, Path)),
    responses((status = 200, body = PoolChanged)))]
pub(super) async fn drain(
    State(shared): State<Shared>,
    By(caller): By,
    Path(pool): Path<String>,
    Maybe(NoBody {}): Maybe<NoBody>,
) -> Answer<Json<PoolChanged>> {
    change(&shared, &caller, pool, Some(Closed::Draining)).await
}

async fn change(shared: &Shared, caller: &Caller, pool: String, state: Option<Closed>) -> Answer<Json<PoolChanged>> {
    let name = PoolName::from(pool);
    shared.engine.set_pool_state(caller, &name, state).await?;
    Ok(Json(PoolChanged::new(shared.engine.pool(&name).await.as_ref())))
}

/// Let a worker finish what it holds and leave.
#[utoipa::path(post, path = "/v1/workers/{id}/drain", params(("id" = String, Path)),
    responses((status = 200, body = DrainedWorker)))]
pub(super) async fn drain_worker(
    State(shared): State<Shared>,
    By(caller): By,
    Path(id): Path<String>,
    Maybe(NoBody {}): Maybe<NoBody>,
) -> Answer<Json<DrainedWorker>> {
    let sessions = shared.engine.drain_worker(&caller, &WorkerId::from(id.clone())).await?;
    Ok(Json(DrainedWorker { worker_id: id, sessions }))
}
