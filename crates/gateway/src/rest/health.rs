//! Whether we live, whether we can work, and how we are.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use lockgate_api::view::Health;
use serde::Serialize;
use utoipa::ToSchema;

use super::RouteResult;
use super::problem::Problem;
use crate::{ServiceContext, wire};

#[derive(Serialize, ToSchema)]
pub(super) struct Alive {
    status: &'static str,
}

/// Tell that the process lives.
///
/// It asks no other component and waits for none, so that neither a Store that is away nor a busy machine makes a
/// supervisor kill a process that would recover by itself.
#[utoipa::path(get, path = "/healthz", operation_id = "get_liveness",
    responses((status = 200, description = "The process lives", body = Alive)))]
pub(super) async fn healthz() -> Json<Alive> {
    Json(Alive { status: "alive" })
}

#[derive(Serialize, ToSchema)]
pub(super) struct Readiness {
    /// ready or degraded
    status: &'static str,
    /// What is wrong although calls are served.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

/// Tell whether calls can be served here. Otherwise the code of the problem says why not.
#[utoipa::path(get, path = "/readyz", operation_id = "get_readiness",
    responses((status = 200, description = "Calls can be served", body = Readiness)))]
pub(super) async fn readyz(State(shared): State<ServiceContext>) -> RouteResult<Json<Readiness>> {
    let view = shared.engine.health().await;
    let status = view.status();
    let worst = view.findings.into_iter().next();
    // Anybody may ask, so nobody is told what a server behind us said: that is for those who see /monitor/health.
    let text = worst.as_ref().map(|worst| worst.trouble.advice().to_owned());
    let code = worst.map(|worst| worst.trouble.code());
    match (status, code, text) {
        // Whatever the reason: send the traffic elsewhere.
        ("not_ready", Some(code), Some(text)) => Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, text)),
        (status, code, detail) => Ok(Json(Readiness { status, code, detail })),
    }
}

/// Return the health of this process: its Store, its loops, who leads them, and what it depends on.
#[utoipa::path(get, path = "/monitor/health", operation_id = "get_health",
    responses((status = 200, description = "The health of this process", body = Health)))]
pub(super) async fn monitor(State(shared): State<ServiceContext>) -> Json<Health> {
    Json(wire::health(&shared.engine.health().await).into())
}
