//! Tenants: what they have, and forgetting one.

use axum::Json;
use axum::extract::{Path, State};
use lockgate_api::body::EraseBody;
use lockgate_api::view::{ErasedTenant, Tenants};
use lockgate_core::ids::TenantId;

use super::body::Sent;
use super::query::{Params, TenantParams};
use super::{CallerExtractor, RouteResult};
use crate::{ServiceContext, wire};

/// List tenants with their usage and quotas, by name.
///
/// A caller bound to one tenant gets only its own.
#[utoipa::path(get, path = "/v1/tenants", operation_id = "list_tenants", params(TenantParams),
    responses((status = 200, description = "One page of tenants", body = Tenants)))]
pub(super) async fn list(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Params(params): Params<TenantParams>,
) -> RouteResult<Json<Tenants>> {
    let (after, limit) = params.read()?;
    let views = shared.engine.tenants(&caller, after.as_ref(), limit).await?;
    Ok(Json(wire::tenants(&views, limit).into()))
}

/// End and delete a part of what a tenant has. Send it again until `done`.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/erase", operation_id = "erase_tenant",
    params(("tenant" = String, Path)), request_body = EraseBody,
    responses((status = 200, description = "What this call ended and deleted, and what is left", body = ErasedTenant)))]
pub(super) async fn erase(
    State(shared): State<ServiceContext>,
    CallerExtractor(caller): CallerExtractor,
    Path(tenant): Path<String>,
    Sent(body): Sent<EraseBody>,
) -> RouteResult<Json<ErasedTenant>> {
    let part = shared.engine.erase_tenant(&caller, &TenantId::from(tenant), &body.confirm).await?;
    Ok(Json(wire::erased(part).into()))
}
