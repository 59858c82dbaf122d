//! Credentials: who is let in, and who one is.

use std::time::Duration;

use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::response::Response;
use http::StatusCode;
use lockgate_api::body::{CertificateBody, KeyBody, RotateBody};
use lockgate_api::credential_to_wire;
use lockgate_api::view::{Credential, Credentials, MadeKey as MadeKeyView, WhoAmI};
use lockgate_core::access::CredentialId;
use lockgate_engine::MadeKey;

use super::body::{Maybe, NoBody, Sent};
use super::query::{NameParams, Params};
use super::{CallerExtractor, RouteResult, with_status};
use crate::access::{entrance, read};
use crate::auth::Authenticated;
use crate::{ServiceContext, wire};

/// Tell the caller's actor, tenant and grant.
#[utoipa::path(get, path = "/v1/whoami", operation_id = "who_am_i",
    responses((status = 200, description = "The caller", body = WhoAmI)))]
pub(super) async fn whoami(
    CallerExtractor(caller): CallerExtractor,
    admitted: Option<Extension<Authenticated>>,
) -> Json<WhoAmI> {
    Json(wire::who_am_i(&caller, admitted.as_ref().map(|admitted| &admitted.identity)).into())
}

/// Make an API key.
///
/// The key is in this response and cannot be read again.
#[utoipa::path(post, path = "/v1/keys", operation_id = "create_key", request_body = KeyBody,
    responses((status = 201, description = "The credential and its key", body = MadeKeyView)))]
pub(super) async fn create(
    State(shared): State<ServiceContext>,
    admitted: Option<Extension<Authenticated>>,
    Sent(body): Sent<KeyBody>,
) -> RouteResult<Response> {
    let digest = &entrance(&shared)?.digest;
    let by = by(admitted)?;
    let made = shared.engine.create_key(&by.identity, digest, read(body)?).await?;
    Ok(shown(&shared, &made))
}

/// Make a new key with the actor and the grant of an existing one.
///
/// The old key works for as long as `overlap_ms` says.
#[utoipa::path(post, path = "/v1/keys/{id}/rotate", operation_id = "rotate_key", params(("id" = String, Path)),
    request_body = Option<RotateBody>,
    responses((status = 201, description = "The new credential and its key", body = MadeKeyView)))]
pub(super) async fn rotate(
    State(shared): State<ServiceContext>,
    admitted: Option<Extension<Authenticated>>,
    Path(id): Path<String>,
    Maybe(body): Maybe<RotateBody>,
) -> RouteResult<Response> {
    let digest = &entrance(&shared)?.digest;
    let by = by(admitted)?;
    let overlap = Duration::from_millis(body.overlap_ms);
    let made = shared.engine.rotate_key(&by.identity, digest, &CredentialId::from(&*id), overlap).await?;
    Ok(shown(&shared, &made))
}

/// Grant roles to a client certificate that the listener verifies.
#[utoipa::path(post, path = "/v1/certificates", operation_id = "bind_certificate", request_body = CertificateBody,
    responses((status = 201, description = "The credential", body = Credential)))]
pub(super) async fn bind(
    State(shared): State<ServiceContext>,
    admitted: Option<Extension<Authenticated>>,
    Sent(body): Sent<CertificateBody>,
) -> RouteResult<Response> {
    entrance(&shared)?;
    let by = by(admitted)?;
    let new = read(body.credential)?;
    let bound = shared.engine.bind_certificate(&by.identity, &body.subject, new).await?;
    Ok(with_status(StatusCode::CREATED, Credential::from(credential_to_wire(&bound, shared.clock.now()))))
}

/// List the credentials that the caller may manage, by id.
#[utoipa::path(get, path = "/v1/credentials", operation_id = "list_credentials", params(NameParams),
    responses((status = 200, description = "One page of credentials", body = Credentials)))]
pub(super) async fn list(
    State(shared): State<ServiceContext>,
    admitted: Option<Extension<Authenticated>>,
    Params(params): Params<NameParams>,
) -> RouteResult<Json<Credentials>> {
    entrance(&shared)?;
    let by = by(admitted)?;
    let (after, limit) = params.page()?;
    let after = after.as_deref().map(CredentialId::from);
    let (rows, next) = shared.engine.credentials(&by.identity, after.as_ref(), limit).await?;
    Ok(Json(wire::credentials(&rows, next.as_ref(), shared.clock.now()).into()))
}

/// End a credential.
///
/// At once on this server, within seconds on the others.
#[utoipa::path(post, path = "/v1/credentials/{id}/revoke", operation_id = "revoke_credential",
    params(("id" = String, Path)),
    responses((status = 200, description = "The credential as it is now", body = Credential)))]
pub(super) async fn revoke(
    State(shared): State<ServiceContext>,
    admitted: Option<Extension<Authenticated>>,
    Path(id): Path<String>,
    Maybe(NoBody {}): Maybe<NoBody>,
) -> RouteResult<Json<Credential>> {
    entrance(&shared)?;
    let by = by(admitted)?;
    let ended = shared.engine.revoke_credential(&by.identity, &CredentialId::from(&*id)).await?;
    Ok(Json(credential_to_wire(&ended, shared.clock.now()).into()))
}

fn by(admitted: Option<Extension<Authenticated>>) -> RouteResult<Authenticated> {
    let nobody = || lockgate_engine::ApiError::Internal("a request came past the gate".into());
    Ok(admitted.map(|Extension(admitted)| admitted).ok_or_else(nobody)?)
}

fn shown(shared: &ServiceContext, made: &MadeKey) -> Response {
    with_status(StatusCode::CREATED, MadeKeyView::from(wire::made_key(made, shared.clock.now())))
}
