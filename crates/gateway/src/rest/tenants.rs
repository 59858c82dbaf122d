//! Tenants: what they have, and forgetting one.

use axum::Json;
use axum::extract::{Path, State};
use lockgate_core::ids::TenantId;

use super::body::Sent;
use super::query::{Params, TenantParams};
use super::request::EraseBody;
use super::views::{ErasedTenant, Tenants};
use super::{Answer, By};
use crate::Shared;

/// What tenants have, and how much they may have, by name. One's own for those who reach only that.
#[utoipa::path(get, path = "/v1/tenants", operation_id = "list_tenants", params(TenantParams),
    responses((status = 200, body = Tenants)))]
pub(super) async fn list(
    State(shared): State<Shared>,
    By(caller): By,
    Params(params): Params<TenantParams>,
) -> Answer<Json<Tenants>> {
    let (after, limit) = params.read()?;
    let views = shared.engine.tenants(&caller, after.as_ref(), limit).await?;
    Ok(Json(Tenants::new(views, limit)))
}

/// End and delete a part of what a tenant has. Send it again until `done`.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/erase", operation_id = "erase_tenant",
    params(("tenant" = String, Path)), request_body = EraseBody, responses((status = 200, body = ErasedTenant)))]
pub(super) async fn erase(
    State(shared): State<Shared>,
    By(caller): By,
    Path(tenant): Path<String>,
    Sent(body): Sent<EraseBody>,
) -> Answer<Json<ErasedTenant>> {
    let part = shared.engine.erase_tenant(&caller, &TenantId::from(tenant), &body.confirm).await?;
    Ok(Json(ErasedTenant::from(part)))
}
