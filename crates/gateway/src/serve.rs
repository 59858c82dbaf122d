//! One listening socket: HTTP/1.1 and HTTP/2 without TLS, gRPC told from REST by its content type.
//!
//! Rejected: one merged router. Both sides answer unknown paths in their own way, gRPC with UNIMPLEMENTED and REST with
//! a problem document, and a router has one fallback.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::header::CONTENT_TYPE;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::hosts::Hosts;
use crate::{grpc, rest};

/// Calls under way at shutdown may take this long; then their connections are cut.
const DRAIN: Duration = Duration::from_secs(1);
/// Pause after a failed accept: out of file descriptors, for instance, does not get better by spinning.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);
/// A dead peer is noticed after twice this, which bounds how long its stream is held.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// The HTTP/2 defaults (64 KiB) stall a stream that carries thousands of jobs in one message.
const STREAM_WINDOW_BYTES: u32 = 2 * 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
const FRAME_BYTES: u32 = 64 * 1024;
/// Clients share one connection among many calls at once.
const STREAMS_MAX: u32 = 2_000;
/// Clients that cancel many calls at once are not attackers; the default of 20 cuts their connection.
const RESETS_MAX: usize = 1_000;

/// What stands behind the socket.
#[derive(Clone)]
pub(crate) struct Doors {
    pub(crate) hosts: Hosts,
    pub(crate) grpc: Option<Router>,
    pub(crate) rest: Router,
}

pub(crate) async fn serve(
    listener: TcpListener,
    doors: Doors,
    closing: CancellationToken,
    shutdown: impl Future<Output = ()>,
) {
    let builder = builder();
    let graceful = GracefulShutdown::new();
    let cut = CancellationToken::new();
    tokio::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => open(stream, &builder, doors.clone(), &graceful, cut.clone()),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
    drop(listener);
    closing.cancel();
    if tokio::time::timeout(DRAIN, graceful.shutdown()).await.is_err() {
        tracing::info!("calls that were still under way at shutdown are cut off");
        cut.cancel();
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new());
    builder
        .http2()
        .timer(TokioTimer::new())
        .adaptive_window(false)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES)
        .max_concurrent_streams(STREAMS_MAX)
        .max_pending_accept_reset_streams(RESETS_MAX)
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE);
    builder
}

fn open(
    stream: TcpStream,
    builder: &Builder<TokioExecutor>,
    doors: Doors,
    graceful: &GracefulShutdown,
    cut: CancellationToken,
) {
    // Small answers must leave at once; batching is done above, by what waits.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let service = service_fn(move |request: Request<Incoming>| doors.clone().answer(request));
    let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
    let watched = graceful.watch(connection);
    tokio::spawn(async move {
        let ended = cut.run_until_cancelled(watched).await;
        if let Some(Err(error)) = ended {
            tracing::debug!(error = &*error, "a connection ended badly");
        }
    });
}

impl Doors {
    async fn answer(self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        let content = request.headers().get(CONTENT_TYPE);
        let is_grpc = content.is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"));
        if let Err(stranger) = self.hosts.check(&request) {
            return Ok(if is_grpc { grpc::turned_away(stranger) } else { rest::turned_away(stranger) });
        }
        let router = match self.grpc {
            Some(grpc) if is_grpc => grpc,
            _ => self.rest,
        };
        router.oneshot(request.map(Body::new)).await
    }
}
