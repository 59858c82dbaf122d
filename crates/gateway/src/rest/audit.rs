//! The audit trail.

use axum::Json;
use axum::extract::State;
use lockgate_api::view::{AuditRows, Verified};

use super::query::{AuditParams, Params};
use super::{CallerExtractor, RouteResult};
use crate::{ServiceContext, wire};

/// List audit rows of the caller's tenant, oldest first.
///
/// A page may be short, even empty, while it says where the list goes on.
#[utoipa::path(get, path = "/v1/audit", operation_id = "list_audit", params(AuditParams),
    responses((status = 200, description = "One page of audit rows", body = AuditRows)))]
pub(super) async fn list(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Params(params): Params<AuditParams>,
) -> RouteResult<Json<AuditRows>> {
    let (after, limit) = params.page()?;
    let (rows, next) = shared.engine.audit(&caller, after, limit).await?;
    Ok(Json(wire::audit(&rows, next).into()))
}

/// Verify the chain of audit blocks of all tenants, up to the first broken place.
#[utoipa::path(get, path = "/v1/audit/verify", operation_id = "verify_audit",
    responses((status = 200, description = "What was verified, and the first broken place", body = Verified)))]
pub(super) async fn verify(State(shared): State<ServiceContext>) -> RouteResult<Json<Verified>> {
    Ok(Json(wire::verified(shared.engine.verify_audit().await?).into()))
}
