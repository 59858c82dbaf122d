//! Whether we live, whether we can work, and the numbers.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde::Serialize;
use utoipa::ToSchema;

use super::Answer;
use super::problem::Problem;
use crate::Shared;

#[derive(Serialize, ToSchema)]
pub(super) struct Health {
    status: &'static str,
}

/// The process lives.
#[utoipa::path(get, path = "/healthz", responses((status = 200, body = Health)))]
pub(super) async fn healthz() -> Json<Health> {
    Json(Health { status: "alive" })
}

/// The Store can read and write.
#[utoipa::path(get, path = "/readyz", responses((status = 200, body = Health)))]
pub(super) async fn readyz(State(shared): State<Shared>) -> Answer<Json<Health>> {
    match shared.engine.ready().await {
        Ok(()) => Ok(Json(Health { status: "ready" })),
        // Whatever the reason: send the traffic elsewhere.
        Err(error) => Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.code(), error)),
    }
}

/// All metrics as OpenMetrics text.
pub(super) fn metrics(registry: &Registry) -> Response {
    let mut text = String::new();
    if encode(&mut text, registry).is_err() {
        return Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the metrics could not be written")
            .into_response();
    }
    ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response()
}
