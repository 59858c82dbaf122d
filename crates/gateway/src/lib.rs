//! The doors of Lockgate: gRPC and REST on one port, metrics on another.
//!
//! Both speak to the same [`Engine`]: this crate only translates, so a rule about jobs never lives here.

mod configs;
mod dags;
mod errors;
mod grpc;
mod hosts;
mod queries;
mod rest;
mod serve;
mod submit;
mod tenant;

use std::future::Future;
use std::io;
use std::sync::Arc;

use lockgate_core::ids::SessionId;
use lockgate_engine::Engine;
use lockgate_ports::Clock;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use hosts::Hosts;

/// Largest request taken, gRPC message or REST body.
pub const REQUEST_BYTES_MAX: usize = 32 * 1024 * 1024;

#[derive(Clone, Debug)]
pub struct GatewaySettings {
    /// The session of the worker inside this process, if there is one: it dies with the server, and is known to have.
    pub in_process_session: Option<SessionId>,
    /// What an acknowledged submit means with the Store in use.
    pub ack: &'static str,
    /// Answer whatever host a request names, and pages of any site. Otherwise only the names of this machine are answered:
    /// see `hosts`.
    pub any_host: bool,
    pub doors: Doors,
}

/// What is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Doors {
    #[default]
    All,
    /// Verdicts and policies for schedulers elsewhere; no jobs.
    Kernel,
    /// Only whether the process lives and can work.
    Health,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self { in_process_session: None, ack: "fsynced", any_host: false, doors: Doors::All }
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
pub(crate) struct Shared {
    engine: Engine,
    clock: Arc<dyn Clock>,
    settings: Arc<GatewaySettings>,
    /// Open streams end when this fires; without it they would hold up a shutdown for ever.
    closing: CancellationToken,
}

impl Gateway {
    /// Serves gRPC and REST until `shutdown`, then ends open streams, lets calls under way finish for a moment, and
    /// returns. Clients and workers reconnect by themselves.
    pub async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let closing = CancellationToken::new();
        let bound = listener.local_addr()?.ip();
        let hosts = if self.settings.any_host { Hosts::Any } else { Hosts::Local { bound } };
        let shared =
            Shared { engine: self.engine, clock: self.clock, settings: Arc::new(self.settings), closing: closing.clone() };
        let engine = shared.engine.clone();
        let ready = || async { engine.ready().await.is_ok() };
        let (grpc, reporter) = grpc::router(&shared).await.map_err(io::Error::other)?;
        let open = shared.settings.doors;
        let doors = serve::Doors { hosts, grpc: Some(grpc), rest: rest::router(shared) };
        let health = grpc::health::mirror(reporter, open, closing.clone(), ready);
        tokio::join!(serve::serve(listener, doors, closing, shutdown), health);
        Ok(())
    }
}

/// Serves `/metrics` and `/healthz` until `shutdown`.
pub async fn serve_metrics(listener: TcpListener, registry: Arc<Registry>, shutdown: impl Future<Output = ()>) {
    // Scrapers come under many names, and the numbers are for anybody who can connect.
    let doors = serve::Doors { hosts: Hosts::Any, grpc: None, rest: rest::metrics_router(registry) };
    serve::serve(listener, doors, CancellationToken::new(), shutdown).await;
}
