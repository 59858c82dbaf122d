//! gRPC: the services of `lockgate.v1`, health and reflection.

mod convert;
mod exchange;
pub(crate) mod health;
mod lists;
mod scheduler;
mod worker;

use axum::Router;
use axum::body::Body;
use lockgate_engine::ApiError;
use lockgate_proto::v1;
use lockgate_proto::v1::scheduler_server::SchedulerServer;
use lockgate_proto::v1::worker_server::WorkerServer;
use tonic::service::Routes;
use tonic_health::server::HealthReporter;
use tonic_reflection::server::Error as ReflectionError;

use crate::hosts::Stranger;
use crate::{REQUEST_BYTES_MAX, Shared};

/// Clients' calls.
struct SchedulerService(Shared);

/// Workers' streams.
struct WorkerService(Shared);

/// The services, and the one who says how they are.
pub(crate) async fn router(shared: &Shared) -> Result<(Router, HealthReporter), ReflectionError> {
    let (reporter, health_service) = tonic_health::server::health_reporter();
    health::report(&reporter, true).await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(v1::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()?;
    let scheduler = SchedulerServer::new(SchedulerService(shared.clone())).max_decoding_message_size(REQUEST_BYTES_MAX);
    let worker = WorkerServer::new(WorkerService(shared.clone())).max_decoding_message_size(REQUEST_BYTES_MAX);
    let routes = Routes::new(scheduler).add_service(worker).add_service(health_service).add_service(reflection).prepare();
    Ok((routes.into_axum_router(), reporter))
}

pub(crate) fn turned_away(stranger: Stranger) -> http::Response<Body> {
    tonic::Status::permission_denied(stranger.as_str()).into_http()
}

/// Turns the engine's answer into gRPC's.
fn answer<T>(result: Result<T, ApiError>) -> Result<tonic::Response<T>, tonic::Status> {
    result.map(tonic::Response::new).map_err(|error| crate::errors::status(&error))
}
