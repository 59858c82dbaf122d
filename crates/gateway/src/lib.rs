//! The doors of Lockgate: gRPC, REST and the dashboard on one port, metrics on another.
//!
//! Both speak to the same [`Engine`]: this crate only translates, so a rule about jobs never lives here.

mod access;
mod answers;
mod auth;
mod bus_submits;
mod bus_workers;
mod calls;
#[cfg(test)]
#[path = "../tests/api/support/tls.rs"]
mod certificates;
mod configs;
mod dags;
mod dashboard;
mod errors;
mod follow;
mod grpc;
mod hosts;
mod metrics;
mod peer;
mod queries;
mod rest;
mod schedules;
mod serve;
mod shares;
mod submit;
mod tenant;
mod tls;
mod wire;

use std::future::Future;
use std::io;
use std::sync::Arc;

use lockgate_core::ids::SessionId;
use lockgate_engine::Engine;
use lockgate_ports::Clock;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use auth::Authenticator;
use calls::{CALLS_MAX, CallLimits};
use hosts::Hosts;
use serve::{ConnectionAuth, Reception};

pub use auth::{AccessMode, Entrance};
pub use bus_submits::BusSubmits;
pub use bus_workers::{BusWorkerSettings, BusWorkers, SendFailure, WorkerMessenger};
pub use metrics::ConnectionMetrics;
pub use peer::{PeerAddress, PeerCertificate};
pub use tls::{ListenerTls, TlsError};

/// Largest request taken, gRPC message or REST body.
pub const REQUEST_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Open connections, unless said otherwise. Clients and workers share one among many calls, so this is many of them.
const CONNECTIONS_MAX: usize = 4_096;
/// Open connections of those who read metrics.
const SCRAPERS_MAX: usize = 64;

#[derive(Clone, Debug)]
pub struct GatewaySettings {
    /// The session of the worker inside this process, if there is one: it dies with the server, and is known to have.
    pub in_process_session: Option<SessionId>,
    /// What an acknowledged submit means with the Store in use.
    pub ack: &'static str,
    /// Answer whatever host a request names, and pages of any site. Otherwise only the names of this machine are answered:
    /// see `hosts`.
    pub any_host: bool,
    pub surface: ApiSurface,
    /// Serve the page for people too, where jobs are served.
    pub dashboard: bool,
    pub access: AccessMode,
    /// None: in the clear.
    pub tls: Option<ListenerTls>,
    /// Connections open at once; when few places are free, idle ones make room for new ones. One network may have an eighth of them.
    pub connections_max: usize,
    /// Counts connections; a clone of it is registered where metrics are served.
    pub connections: ConnectionMetrics,
}

/// What is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApiSurface {
    #[default]
    All,
    /// Verdicts and policies for schedulers elsewhere; no jobs.
    Kernel,
    /// Only whether the process lives and can work.
    Health,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            in_process_session: None,
            ack: "fsynced",
            any_host: false,
            surface: ApiSurface::All,
            dashboard: true,
            access: AccessMode::Open,
            tls: None,
            connections_max: CONNECTIONS_MAX,
            connections: ConnectionMetrics::default(),
        }
    }
}

/// The public API over one engine.
#[derive(Clone)]
pub struct Gateway {
    pub engine: Engine,
    pub clock: Arc<dyn Clock>,
    pub settings: GatewaySettings,
}

/// What every service and route needs.
#[derive(Clone)]
pub(crate) struct ServiceContext {
    engine: Engine,
    clock: Arc<dyn Clock>,
    settings: Arc<GatewaySettings>,
    /// Open streams end when this fires; without it they would hold up a shutdown for ever.
    closing: CancellationToken,
}

impl Gateway {
    /// This API for clients inside this process: without TLS, and without counting its connections.
    pub fn behind(&self) -> Self {
        let connections = ConnectionMetrics::default();
        Self { settings: GatewaySettings { tls: None, connections, ..self.settings.clone() }, ..self.clone() }
    }

    /// Serves gRPC and REST until `shutdown`, then ends open streams, lets calls under way finish for a moment, and
    /// returns. Clients and workers reconnect by themselves.
    pub async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let closing = CancellationToken::new();
        let bound = listener.local_addr()?.ip();
        let reception = Reception {
            tls: self.settings.tls.clone(),
            connections_max: self.settings.connections_max,
            shared: true,
            metrics: self.settings.connections.clone(),
        };
        let hosts = if self.settings.any_host { Hosts::Any } else { Hosts::Local { bound } };
        let gate =
            ConnectionAuth::Api(Authenticator::new(self.engine.clone(), self.clock.clone(), self.settings.access.clone()));
        let shared = ServiceContext {
            engine: self.engine,
            clock: self.clock,
            settings: Arc::new(self.settings),
            closing: closing.clone(),
        };
        let engine = shared.engine.clone();
        let ready = || async { engine.health().await.is_ready() };
        let (grpc, reporter) = grpc::router(&shared).await.map_err(io::Error::other)?;
        let open = shared.settings.surface;
        // A safety kernel is asked by schedulers alone. If it stalls, one of them may have many questions open, and must not
        // take a refusal for a kernel that is away.
        let calls = if open == ApiSurface::Kernel { CallLimits::unshared(CALLS_MAX) } else { CallLimits::new(CALLS_MAX) };
        let surface = serve::ListenerServices { hosts, gate, calls, grpc: Some(grpc), rest: rest::router(shared) };
        let health = grpc::health::mirror(reporter, open, closing.clone(), ready);
        tokio::join!(serve::serve(listener, reception, surface, closing, shutdown), health);
        Ok(())
    }
}

impl Gateway {
    /// Serves `/metrics`, to those who may see everybody's numbers, and `/healthz` until `shutdown`.
    pub async fn serve_metrics(&self, listener: TcpListener, registry: Arc<Registry>, shutdown: impl Future<Output = ()>) {
        // Scrapers come under many names; a credential, where one is asked for, is what counts.
        let gate = ConnectionAuth::Metrics(Authenticator::new(
            self.engine.clone(),
            self.clock.clone(),
            self.settings.access.clone(),
        ));
        let (calls, rest) = (CallLimits::unshared(SCRAPERS_MAX), rest::metrics_router(registry));
        let surface = serve::ListenerServices { hosts: Hosts::Any, gate, calls, grpc: None, rest };
        // Where file descriptors are few, scrapers leave most of them to the API as well.
        let connections_max = SCRAPERS_MAX.min(self.settings.connections_max / 4).max(1);
        let reception = Reception::of_scrapers(self.settings.tls.clone(), connections_max);
        serve::serve(listener, reception, surface, CancellationToken::new(), shutdown).await;
    }
}
