//! One listening socket: HTTP/1.1 and HTTP/2, with TLS or without, gRPC told from REST by its content type.
//!
//! Rejected: one merged router. Both sides answer unknown paths in their own way, gRPC with UNIMPLEMENTED and REST with
//! a problem document, and a router has one fallback.

mod idle;
mod opening;
mod places;
mod unread;

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::{BoxError, Router};
use http::header::CONTENT_TYPE;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::{Builder, Connection};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::auth::{self, Authenticator};
use crate::calls::{CallLimits, Timely};
use crate::hosts::Hosts;
use crate::metrics::ConnectionMetrics;
use crate::peer::{PeerAddress, PeerCertificate};
use crate::tls::ListenerTls;
use crate::{grpc, rest};
use idle::Presence;
use opening::Opening;
use places::{Guest, Places};
use unread::BodyEnd;

/// Calls under way at shutdown may take this long; then their connections are cut.
const DRAIN: Duration = Duration::from_secs(1);
/// An idle connection that has to make room has so long to say goodbye; a call that comes meanwhile is answered first.
const GOODBYE: Duration = Duration::from_millis(200);
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

/// Who is let through to what.
#[derive(Clone)]
pub(crate) enum ConnectionAuth {
    Api(Authenticator),
    Metrics(Authenticator),
    /// Everybody, to see what the socket itself does.
    #[cfg(test)]
    Nobody,
}

/// For the first bytes of a connection, and for the head of every HTTP/1.1 request: slow clients are cut off.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// Largest head of a request.
const HEAD_BYTES_MAX: u32 = 64 * 1024;

/// How one comes in.
#[derive(Clone, Debug)]
pub(crate) struct Reception {
    pub(crate) tls: Option<ListenerTls>,
    /// Beyond it connections wait until the system takes them no more.
    pub(crate) connections_max: usize,
    /// One network may have only a part of them.
    pub(crate) shared: bool,
    pub(crate) metrics: ConnectionMetrics,
}

impl Reception {
    /// Of the door for metrics, which is not for strangers: agents that collect numbers often come from one address, so
    /// none has a mere share. Its connections are not counted with the others: the numbers are about the API.
    pub(crate) fn of_scrapers(tls: Option<ListenerTls>, connections_max: usize) -> Self {
        Self { tls, connections_max, shared: false, metrics: ConnectionMetrics::default() }
    }
}

/// What stands behind the socket.
#[derive(Clone)]
pub(crate) struct ListenerServices {
    pub(crate) hosts: Hosts,
    pub(crate) gate: ConnectionAuth,
    pub(crate) calls: CallLimits,
    pub(crate) grpc: Option<Router>,
    pub(crate) rest: Router,
}

pub(crate) async fn serve(
    listener: TcpListener,
    reception: Reception,
    surface: ListenerServices,
    closing: CancellationToken,
    shutdown: impl Future<Output = ()>,
) {
    // Dropping this future ends what it started.
    let _closed = closing.clone().drop_guard();
    let cut = CancellationToken::new();
    let host = Host { builder: builder(), reception, surface, closing: closing.clone(), cut: cut.clone() };
    if let Some(tls) = host.reception.tls.clone() {
        tokio::spawn(closing.clone().run_until_cancelled_owned(tls.watch()));
    }
    let host = Arc::new(host);
    let connections = TaskTracker::new();
    let places = Places::new(&host.reception);
    tokio::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = places.accept(&listener) => accepted,
        };
        match accepted {
            Ok(guest) => drop(connections.spawn(host.clone().receive(guest))),
            Err(error) => {
                places.failed(&error);
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
    drop(listener);
    closing.cancel();
    connections.close();
    if tokio::time::timeout(DRAIN, connections.wait()).await.is_err() {
        tracing::info!("shutdown: open calls were cut off");
        cut.cancel();
    }
}

/// What every connection needs.
struct Host {
    builder: Builder<TokioExecutor>,
    reception: Reception,
    surface: ListenerServices,
    closing: CancellationToken,
    cut: CancellationToken,
}

impl Host {
    async fn receive(self: Arc<Self>, guest: Guest) {
        let Guest { stream, address, place: _place, presence } = guest;
        let Some(tls) = &self.reception.tls else {
            return self.converse(stream, Peer { address, certificate: None }, &presence).await;
        };
        let greeted = tokio::select! {
            biased;
            () = self.closing.cancelled() => return,
            () = presence.dismissed() => return,
            greeted = tls.greet(stream) => greeted,
        };
        match greeted {
            Ok(Some((stream, certificate))) => self.converse(stream, Peer { address, certificate }, &presence).await,
            Ok(None) => {}
            Err(error) => {
                self.reception.metrics.handshakes_failed.inc();
                tracing::debug!(%address, %error, "a connection ended before TLS was agreed on");
            }
        }
    }

    async fn converse<S>(&self, stream: S, peer: Peer, presence: &Presence)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (surface, metrics, here) = (self.surface.clone(), self.reception.metrics.clone(), presence.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            peer.introduce(&mut request);
            let (surface, metrics) = (surface.clone(), metrics.clone());
            // Probes ask how the server is; that it says so is no failed request.
            let counts = !matches!(request.uri().path(), "/healthz" | "/readyz");
            let is_grpc = is_grpc(&request);
            let call = here.call();
            async move {
                let response = surface.answer(request).await?;
                if counts {
                    metrics.answered(is_grpc, &response);
                }
                Ok::<_, Infallible>(call.until_the_end_of(response))
            }
        });
        let stream = TokioIo::new(Opening::new(stream, HEAD_WITHIN));
        let connection = pin!(self.builder.serve_connection(stream, service));
        if let Some(Err(error)) = self.cut.run_until_cancelled(self.attend(connection, presence)).await {
            tracing::debug!(error = &*error, "a connection ended badly");
        }
    }

    /// Until the connection ends: by itself, with the server, or to make room. What is under way on it is finished first.
    async fn attend<C: Conversation>(&self, mut connection: Pin<&mut C>, presence: &Presence) -> Result<(), BoxError> {
        tokio::select! {
            ended = &mut connection => return ended,
            () = self.closing.cancelled() => {}
            () = presence.dismissed() => {}
        }
        connection.as_mut().say_goodbye();
        match tokio::time::timeout(GOODBYE, &mut connection).await {
            Ok(ended) => ended,
            // The other end does not answer to a goodbye.
            Err(_) if presence.is_idle() => Ok(()),
            Err(_) => connection.await,
        }
    }
}

/// A connection that can be asked to end when its calls are done.
trait Conversation: Future<Output = Result<(), BoxError>> {
    fn say_goodbye(self: Pin<&mut Self>);
}

impl<I, S> Conversation for Connection<'_, I, S, TokioExecutor>
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
    I: hyper::rt::Read + hyper::rt::Write + Unpin + 'static,
{
    fn say_goodbye(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// The other end of a connection.
struct Peer {
    address: SocketAddr,
    certificate: Option<PeerCertificate>,
}

impl Peer {
    fn introduce(&self, request: &mut Request<Incoming>) {
        request.extensions_mut().insert(PeerAddress(self.address));
        if let Some(certificate) = &self.certificate {
            request.extensions_mut().insert(certificate.clone());
        }
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN).max_buf_size(HEAD_BYTES_MAX as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .adaptive_window(false)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES)
        .max_header_list_size(HEAD_BYTES_MAX)
        .max_concurrent_streams(STREAMS_MAX)
        .max_pending_accept_reset_streams(RESETS_MAX)
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE);
    builder
}

fn is_grpc(request: &Request<Incoming>) -> bool {
    let content = request.headers().get(CONTENT_TYPE);
    content.is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}

/// A body must come in time, unless it is a stream that goes on as the caller likes.
fn in_time(request: Request<Incoming>, is_grpc: bool, end: &BodyEnd) -> Request<Body> {
    if is_grpc && auth::comes_on(request.uri().path()) {
        return request.map(Body::new);
    }
    let late: fn() -> BoxError = if is_grpc { grpc::sent_late } else { rest::sent_late };
    request.map(|body| Body::new(Timely::new(end.watch(body), late)))
}

impl ListenerServices {
    async fn answer(self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        let end = BodyEnd::of(&request);
        self.admit_and_answer(request, &end).await.map(|response| end.told(response))
    }

    async fn admit_and_answer(self, mut request: Request<Incoming>, end: &BodyEnd) -> Result<Response<Body>, Infallible> {
        let is_grpc = is_grpc(&request);
        if let Err(stranger) = self.hosts.check(&request) {
            return Ok(if is_grpc { grpc::turned_away(stranger) } else { rest::turned_away(stranger) });
        }
        let admitted = match &self.gate {
            ConnectionAuth::Api(gate) => gate.admit(&mut request, is_grpc).await,
            ConnectionAuth::Metrics(gate) => gate.admit_scrape(&mut request).await.map(|()| None),
            #[cfg(test)]
            ConnectionAuth::Nobody => Ok(None),
        };
        let leash = match admitted {
            Ok(leash) => leash,
            Err(refusal) => return Ok(if is_grpc { grpc::refused(&refusal) } else { rest::refused(&refusal) }),
        };
        let router = match self.grpc {
            Some(grpc) if is_grpc => grpc,
            _ => self.rest,
        };
        match self.calls.answer(in_time(request, is_grpc, end), |request| router.oneshot(request)).await {
            Ok(answered) => {
                answered.map(|response| if is_grpc { grpc::explained(response) } else { response }).map(|response| {
                    match leash {
                        Some(leash) => leash.hold(response, is_grpc),
                        None => response,
                    }
                })
            }
            Err(unanswered) if is_grpc => Ok(grpc::unanswered(unanswered)),
            Err(unanswered) => Ok(rest::unanswered(unanswered)),
        }
    }
}

#[cfg(test)]
mod tests;
