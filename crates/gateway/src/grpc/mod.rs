//! gRPC: the services of `lockgate.v1`, health and reflection.

mod access;
mod admin;
mod approvals;
pub(crate) mod exchange;
pub(crate) mod health;
mod kernel;
mod lists;
mod monitor;
mod orchestrator;
mod pools;
mod scaler;
mod scheduler;
mod schedules;
mod worker;

use std::pin::Pin;

use axum::body::Body;
use axum::{BoxError, Router};
use futures::{Stream, StreamExt};
use lockgate_core::request::Caller;
use lockgate_engine::ApiError;
use lockgate_proto::keda::external_scaler_server::ExternalScalerServer;
use lockgate_proto::v1;
use lockgate_proto::v1::access_server::AccessServer;
use lockgate_proto::v1::admin_server::AdminServer;
use lockgate_proto::v1::approvals_server::ApprovalsServer;
use lockgate_proto::v1::monitor_server::MonitorServer;
use lockgate_proto::v1::orchestrator_server::OrchestratorServer;
use lockgate_proto::v1::output_policy_server::OutputPolicyServer;
use lockgate_proto::v1::pools_server::PoolsServer;
use lockgate_proto::v1::safety_kernel_server::SafetyKernelServer;
use lockgate_proto::v1::scheduler_server::SchedulerServer;
use lockgate_proto::v1::schedules_server::SchedulesServer;
use lockgate_proto::v1::worker_server::WorkerServer;
use tokio_util::sync::CancellationToken;
use tonic::Code;
use tonic::codec::CompressionEncoding::Gzip;
use tonic::service::Routes;
use tonic_health::server::HealthReporter;
use tonic_reflection::server::Error as ReflectionError;

use crate::auth::AuthRefusal;
use crate::calls::{CallRefusal, SentLate};
use crate::follow::{Followed, follow};
use crate::hosts::HostRefusal;
use crate::{ApiSurface, REQUEST_BYTES_MAX, ServiceContext, errors, tenant};

pub(crate) use scheduler::submit_many;

/// The largest message of services that take names, notes and numbers, but no jobs and no files.
const SMALL_BYTES_MAX: usize = 64 * 1024;
/// What strangers may send: the name of a service.
const HEALTH_BYTES_MAX: usize = 1024;

type GrpcResult<T> = Result<tonic::Response<T>, tonic::Status>;
/// An answer that goes on.
type ResponseStream<M> = Pin<Box<dyn Stream<Item = Result<M, tonic::Status>> + Send>>;

/// Clients' calls.
struct SchedulerService(ServiceContext);

/// Workers' streams.
struct WorkerService(ServiceContext);

/// People's answers.
struct ApprovalsService(ServiceContext);

/// Where jobs run.
struct PoolsService(ServiceContext);

/// Workflows.
struct OrchestratorService(ServiceContext);

/// What starts by itself.
struct SchedulesService(ServiceContext);

/// Credentials.
struct AccessService(ServiceContext);

/// Policies and their records.
struct AdminService(ServiceContext);

/// What autoscalers ask.
struct ScalerService(ServiceContext);

/// How the process is.
struct MonitorService(ServiceContext);

/// Verdicts, on jobs and on results.
struct KernelService(ServiceContext);

/// Messages of a bounded size, also as gzip: tonic keeps to the bound while it unpacks.
macro_rules! taken {
    ($service:expr, $bytes:expr) => {
        $service.max_decoding_message_size($bytes).accept_compressed(Gzip)
    };
}

/// Answers as gzip too, to clients that take it. Not for what workers and schedulers wait for: it costs more time than it saves there.
macro_rules! offered {
    ($service:expr, $bytes:expr) => {
        taken!($service, $bytes).send_compressed(Gzip)
    };
}

/// The services, and the one who says how they are.
pub(crate) async fn router(shared: &ServiceContext) -> Result<(Router, HealthReporter), ReflectionError> {
    let (reporter, health_service) = tonic_health::server::health_reporter();
    let health_service = health_service.max_decoding_message_size(HEALTH_BYTES_MAX);
    health::report(&reporter, shared.settings.surface, true).await;
    let described = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(v1::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let reflection = described().build_v1()?.max_decoding_message_size(SMALL_BYTES_MAX);
    // What clients asked before there was a first version, and many still do.
    let old_reflection = described().build_v1alpha()?.max_decoding_message_size(SMALL_BYTES_MAX);
    let (limit, small) = (REQUEST_BYTES_MAX, SMALL_BYTES_MAX);
    let mut routes = Routes::builder();
    if shared.settings.surface == ApiSurface::All {
        routes
            .add_service(offered!(SchedulerServer::new(SchedulerService(shared.clone())), limit))
            .add_service(taken!(WorkerServer::new(WorkerService(shared.clone())), limit))
            .add_service(offered!(ApprovalsServer::new(ApprovalsService(shared.clone())), small))
            .add_service(offered!(OrchestratorServer::new(OrchestratorService(shared.clone())), limit))
            .add_service(offered!(SchedulesServer::new(SchedulesService(shared.clone())), limit))
            .add_service(offered!(PoolsServer::new(PoolsService(shared.clone())), limit))
            .add_service(offered!(ExternalScalerServer::new(ScalerService(shared.clone())), small));
    }
    if shared.settings.surface != ApiSurface::Health {
        routes
            .add_service(offered!(AccessServer::new(AccessService(shared.clone())), small))
            .add_service(offered!(AdminServer::new(AdminService(shared.clone())), limit))
            .add_service(taken!(SafetyKernelServer::new(KernelService(shared.clone())), limit))
            .add_service(taken!(OutputPolicyServer::new(KernelService(shared.clone())), limit));
    }
    routes.add_service(offered!(MonitorServer::new(MonitorService(shared.clone())), small));
    routes.add_service(health_service).add_service(reflection).add_service(old_reflection);
    let routes = routes.routes().prepare();
    Ok((routes.into_axum_router(), reporter))
}

/// The answer to a failed authentication.
pub(crate) fn refused(refusal: &AuthRefusal) -> http::Response<Body> {
    errors::refused(refusal).into_http()
}

pub(crate) fn turned_away(stranger: HostRefusal) -> http::Response<Body> {
    tonic::Status::permission_denied(stranger.as_str()).into_http()
}

/// Why there is no answer.
pub(crate) fn unanswered(why: CallRefusal) -> http::Response<Body> {
    let code = match why {
        CallRefusal::Crowded | CallRefusal::OwnShare => Code::ResourceExhausted,
        CallRefusal::Late => Code::DeadlineExceeded,
        CallRefusal::BadTimeoutHeader => Code::InvalidArgument,
    };
    errors::told(code, why.code(), why.text(), why.retry_after()).into_http()
}

/// Says with its stable code that a message was too large: the library that reads it knows no codes.
pub(crate) fn explained(answer: http::Response<Body>) -> http::Response<Body> {
    match tonic::Status::from_header_map(answer.headers()) {
        Some(status) if status.code() == Code::OutOfRange && status.details().is_empty() => {
            errors::told(Code::OutOfRange, "payload_too_large", status.message(), None).into_http()
        }
        _ => answer,
    }
}

/// What reads a body is told when it comes too slowly.
pub(crate) fn sent_late() -> BoxError {
    Box::new(errors::told(Code::DeadlineExceeded, SentLate::CODE, SentLate.to_string(), None))
}

/// Turns the engine's answer into gRPC's.
fn answer<T>(result: Result<T, ApiError>) -> GrpcResult<T> {
    result.map(tonic::Response::new).map_err(|error| errors::status(&error))
}

/// A followed resource as a gRPC stream.
fn told<W: Followed, M>(
    watch: W,
    closing: CancellationToken,
    message: impl Fn(W::Item) -> M + Send + 'static,
) -> ResponseStream<M> {
    Box::pin(follow(watch, closing).map(move |item| item.map(&message).map_err(|error| errors::status(&error))))
}

fn caller<T>(request: &tonic::Request<T>) -> Result<Caller, tonic::Status> {
    tenant::caller(request.metadata().as_ref(), request.extensions()).map_err(|error| errors::status(&error))
}
