//! REST: JSON in, JSON or problem documents out, described by `/openapi.json`.

mod access;
mod approvals;
mod audit;
mod body;
mod config;
mod dags;
mod dead_letters;
mod describe;
mod health;
mod idempotency;
mod jobs;
mod listen;
mod numbers;
mod overview;
mod policy;
mod pools;
mod problem;
mod query;
mod request;
mod schedules;
mod tenants;

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::header::{ALLOW, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use lockgate_core::ids::JobId;
use lockgate_core::request::Caller;
use prometheus_client::registry::Registry;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::auth::{AccessMode, AuthRefusal};
use crate::calls::CallRefusal;
use crate::hosts::HostRefusal;
use crate::{ApiSurface, ServiceContext, dashboard, tenant};
use problem::Problem;

pub(crate) use body::sent_late;

/// A route's answer: a success, or a problem document.
type RouteResult<T> = Result<T, Problem>;

pub(crate) fn router(shared: ServiceContext) -> Router {
    let described = OpenApiRouter::with_openapi(describe::Document::openapi());
    let described = match shared.settings.surface {
        ApiSurface::All => governance_routes(schedule_routes(dag_routes(jobs_routes(described)))),
        ApiSurface::Kernel => governance_routes(described),
        ApiSurface::Health => described,
    };
    let (router, mut api) = described
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::monitor))
        .split_for_parts();
    let asks = matches!(shared.settings.access, AccessMode::Closed(_));
    describe::complete(&mut api, asks);
    let api = Arc::new(describe::settled(&api));
    let router = router.route("/openapi.json", get(move || async move { Json(api) }));
    let shown = shared.settings.dashboard && shared.settings.surface == ApiSurface::All;
    let router = if shown { dashboard::routes(router) } else { router };
    finish(router.with_state(shared))
}

fn governance_routes(router: OpenApiRouter<ServiceContext>) -> OpenApiRouter<ServiceContext> {
    router
        .routes(routes!(policy::get, policy::put))
        .routes(routes!(policy::roll_back))
        .routes(routes!(policy::snapshots))
        .routes(routes!(policy::snapshot))
        .routes(routes!(policy::explain))
        .routes(routes!(audit::list))
        .routes(routes!(audit::verify))
        .routes(routes!(access::whoami))
        .routes(routes!(access::create))
        .routes(routes!(access::rotate))
        .routes(routes!(access::bind))
        .routes(routes!(access::list))
        .routes(routes!(access::revoke))
}

fn dag_routes(router: OpenApiRouter<ServiceContext>) -> OpenApiRouter<ServiceContext> {
    router
        .routes(routes!(dags::put, dags::list))
        .routes(routes!(dags::get))
        .routes(routes!(dags::start, dags::runs))
        .routes(routes!(dags::run))
        .routes(routes!(dags::graph))
        .routes(routes!(dags::events))
        .routes(routes!(dags::cancel))
        .routes(routes!(dags::pause))
        .routes(routes!(dags::resume))
        .routes(routes!(dags::rerun))
        .routes(routes!(dags::resolve))
}

fn schedule_routes(router: OpenApiRouter<ServiceContext>) -> OpenApiRouter<ServiceContext> {
    router
        .routes(routes!(schedules::put, schedules::list))
        .routes(routes!(schedules::get))
        .routes(routes!(schedules::slots))
        .routes(routes!(schedules::pause))
        .routes(routes!(schedules::resume))
        .routes(routes!(schedules::trigger))
        .routes(routes!(schedules::remove))
        .routes(routes!(schedules::backfill))
        .routes(routes!(schedules::cancel_backfill))
}

/// What a process that only judges does not have.
fn jobs_routes(router: OpenApiRouter<ServiceContext>) -> OpenApiRouter<ServiceContext> {
    router
        .routes(routes!(jobs::submit, jobs::list))
        .routes(routes!(jobs::submit_batch))
        .routes(routes!(jobs::get))
        .routes(routes!(listen::events))
        .routes(routes!(jobs::cancel))
        .routes(routes!(jobs::retry))
        .routes(routes!(jobs::why))
        .routes(routes!(jobs::logs))
        .routes(routes!(listen::logs))
        .routes(routes!(approvals::list))
        .routes(routes!(approvals::approve))
        .routes(routes!(approvals::reject))
        .routes(routes!(approvals::release))
        .routes(routes!(dead_letters::list))
        .routes(routes!(dead_letters::get))
        .routes(routes!(dead_letters::replay_one))
        .routes(routes!(dead_letters::discard))
        .routes(routes!(dead_letters::replay_many))
        .routes(routes!(overview::workers))
        .routes(routes!(overview::queues))
        .routes(routes!(overview::breakers))
        .routes(routes!(pools::list))
        .routes(routes!(pools::pause))
        .routes(routes!(pools::resume))
        .routes(routes!(pools::drain))
        .routes(routes!(pools::drain_worker))
        .routes(routes!(config::get, config::put))
        .routes(routes!(config::roll_back))
        .routes(routes!(config::snapshots))
        .routes(routes!(config::snapshot))
        .routes(routes!(tenants::list))
        .routes(routes!(tenants::erase))
}

pub(crate) fn metrics_router(registry: Arc<Registry>) -> Router {
    let metrics = get(move |headers: HeaderMap| async move { numbers::metrics(&headers, &registry) });
    finish(Router::new().route("/metrics", metrics).route("/healthz", get(health::healthz)))
}

fn finish(router: Router) -> Router {
    router
        .method_not_allowed_fallback(|| async {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this path does not take this method")
        })
        .fallback(|| async { Problem::new(StatusCode::NOT_FOUND, "no_such_route", "there is nothing at this path") })
        .with_state(())
}

/// The answer to a failed authentication.
pub(crate) fn refused(refusal: &AuthRefusal) -> Response {
    let status = match refusal {
        AuthRefusal::Missing | AuthRefusal::Bad | AuthRefusal::Token(_) => StatusCode::UNAUTHORIZED,
        AuthRefusal::Slow(_) => StatusCode::TOO_MANY_REQUESTS,
        AuthRefusal::Forbidden(_) => StatusCode::FORBIDDEN,
        AuthRefusal::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        AuthRefusal::NoSuchMethod { .. } => StatusCode::METHOD_NOT_ALLOWED,
        AuthRefusal::NoSuchPath => StatusCode::NOT_FOUND,
    };
    let mut response = Problem::new(status, refusal.code(), refusal.text()).after(refusal.retry_after()).into_response();
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let AuthRefusal::NoSuchMethod { allow } = refusal {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    }
    response
}

pub(crate) fn turned_away(stranger: HostRefusal) -> Response {
    let (status, code) = match stranger {
        HostRefusal::Host => (StatusCode::MISDIRECTED_REQUEST, "wrong_host"),
        HostRefusal::Origin => (StatusCode::FORBIDDEN, "wrong_origin"),
    };
    Problem::new(status, code, stranger.as_str()).into_response()
}

/// Why there is no answer.
pub(crate) fn unanswered(why: CallRefusal) -> Response {
    let status = match why {
        CallRefusal::Crowded | CallRefusal::OwnShare => StatusCode::TOO_MANY_REQUESTS,
        CallRefusal::Late => StatusCode::GATEWAY_TIMEOUT,
        CallRefusal::BadTimeoutHeader => StatusCode::BAD_REQUEST,
    };
    Problem::new(status, why.code(), why.text()).after(why.retry_after()).into_response()
}

/// The job a path names.
struct JobPath(JobId);

impl<S: Send + Sync> FromRequestParts<S> for JobPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> RouteResult<Self> {
        let path = axum::extract::Path::<String>::from_request_parts(parts, state).await;
        let path = path.map_err(|error| Problem::new(StatusCode::BAD_REQUEST, "invalid_argument", error))?;
        Ok(Self(JobId::from(path.0)))
    }
}

/// Who calls.
struct CallerExtractor(Caller);

impl<S: Send + Sync> FromRequestParts<S> for CallerExtractor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> RouteResult<Self> {
        Ok(Self(tenant::caller(&parts.headers, &parts.extensions)?))
    }
}

/// An answer with a status of its own.
fn with_status(status: StatusCode, view: impl serde::Serialize) -> Response {
    (status, Json(view)).into_response()
}
