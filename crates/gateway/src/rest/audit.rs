//! The audit trail.

use axum::Json;
use axum::extract::State;

use super::query::{AuditParams, Params};
use super::views::{AuditRows, Verified};
use super::{Answer, By};
use crate::Shared;

/// List what governance did for the caller's tenant, oldest first. A page may be short, even empty, while it says that
/// the list goes on.
#[utoipa::path(get, path = "/v1/audit", params(AuditParams), responses((status = 200, body = AuditRows)))]
pub(super) async fn list(
    State(shared): State<Shared>,
    By(caller): By,
    Params(params): Params<AuditParams>,
) -> Answer<Json<AuditRows>> {
    let (after, limit) = params.page()?;
    let (rows, next) = shared.engine.audit(&caller, after, limit).await?;
    Ok(Json(AuditRows::new(&rows, next)))
}

/// Walk the whole chain of blocks, of all tenants, up to the first broken place.
#[utoipa::path(get, path = "/v1/audit/verify", responses((status = 200, body = Verified)))]
pub(super) async fn verify(State(shared): State<Shared>) -> Answer<Json<Verified>> {
    Ok(Json(Verified::from(shared.engine.verify_audit().await?)))
}
