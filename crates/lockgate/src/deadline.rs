//! Deadlines of calls: a server that accepts a connection and never answers must not keep a script waiting.
//!
//! Each call has until `--call-timeout` for its whole answer, and a stream for its beginning. What comes later in a stream has no
//! deadline; HTTP/2 pings notice a server that is gone.

use std::io::{Error, ErrorKind};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, StdError};
use tonic::transport::{Channel, Endpoint};

use crate::output;

/// The default deadline. The server gives up a Store call after 2 s, and the activation of a policy takes a few of these.
pub(crate) const CALL_WITHIN: &str = "30s";
/// The factor for calls that process a list of any length.
const LONG_FACTOR: u32 = 120;
/// Calls whose work grows with the stored data, or that may be told to be slow.
const LONG: [&str; 3] =
    ["/lockgate.v1.Admin/EraseTenant", "/lockgate.v1.Admin/VerifyAudit", "/lockgate.v1.Scheduler/ReplayDeadLetters"];
/// Beside the deadline of its kind: a request that is asked to be slow says in its extensions how long it will work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExtraTime(pub(crate) Duration);

/// Calls that answer with a stream.
const STREAMS: [&str; 3] =
    ["/lockgate.v1.Orchestrator/WatchDAGRun", "/lockgate.v1.Scheduler/WatchJob", "/lockgate.v1.Scheduler/WatchJobLogs"];

/// A busy server may answer a ping late although it is alive.
const PING_WITHIN_MIN: Duration = Duration::from_secs(5);

/// Notices a server that is gone while an answer or a stream is open: a ping after half of the span, and the whole of it for the
/// answer. A call that has only the span ends before that, in words that name the option.
pub(crate) fn watched(endpoint: Endpoint, within: Duration) -> Endpoint {
    let within = within.max(PING_WITHIN_MIN);
    endpoint.http2_keep_alive_interval(within / 2).keep_alive_timeout(within)
}

/// A channel whose calls have a deadline.
#[derive(Clone, Debug)]
pub(crate) struct DeadlineChannel {
    channel: Channel,
    within: Duration,
}

impl DeadlineChannel {
    pub(crate) const fn new(channel: Channel, within: Duration) -> Self {
        Self { channel, within }
    }
}

impl Service<Request<Body>> for DeadlineChannel {
    type Response = Response<Body>;
    type Error = StdError;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.channel.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let path = request.uri().path();
        let is_stream = STREAMS.contains(&path);
        let within = if LONG.contains(&path) { self.within.saturating_mul(LONG_FACTOR) } else { self.within };
        let extra = request.extensions().get::<ExtraTime>().map_or(Duration::ZERO, |extra| extra.0);
        let within = within.saturating_add(extra);
        let answer = self.channel.call(request);
        Box::pin(async move {
            let deadline = Instant::now() + within;
            let answer = timeout_at(deadline, answer).await.map_err(|_| late(within))??;
            if is_stream {
                return Ok(answer);
            }
            let (head, body) = answer.into_parts();
            let whole = timeout_at(deadline, body.collect()).await.map_err(|_| late(within))??;
            Ok(Response::from_parts(head, Body::new(whole)))
        })
    }
}

/// Has a source, like every connection error, so that it is classified as one.
fn late(within: Duration) -> Status {
    let told = format!("no answer within {}; --call-timeout gives it longer", output::span(within));
    let mut status = Status::deadline_exceeded(told.clone());
    status.set_source(Arc::new(Error::new(ErrorKind::TimedOut, told)));
    status
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prost::Message as _;
    use prost_types::FileDescriptorSet;

    use super::*;

    /// A server that accepts connections and says nothing. The clock is paused, so the deadline is the next thing that happens.
    #[tokio::test(start_paused = true)]
    async fn a_request_that_asks_for_extra_time_has_it_beside_the_deadline_of_its_kind() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
        for (extra, hours) in [(None, 1), (Some(ExtraTime(Duration::from_secs(3_600))), 2)] {
            let mut channel = DeadlineChannel::new(endpoint.connect_lazy(), Duration::from_secs(30));
            let mut request = Request::new(Body::empty());
            *request.uri_mut() = "/lockgate.v1.Scheduler/ReplayDeadLetters".parse().expect("a path");
            if let Some(extra) = extra {
                request.extensions_mut().insert(extra);
            }
            let began = Instant::now();
            std::future::poll_fn(|cx| channel.poll_ready(cx)).await.expect("ready");
            assert!(channel.call(request).await.is_err());
            assert_eq!(began.elapsed(), Duration::from_secs(hours * 3_600));
        }
    }

    #[test]
    fn the_calls_that_are_streams_or_long_are_those_of_the_contract() {
        let files = FileDescriptorSet::decode(lockgate_proto::v1::DESCRIPTORS).expect("descriptors").file;
        let (mut streams, mut all) = (BTreeSet::new(), BTreeSet::new());
        for file in &files {
            for service in &file.service {
                for method in &service.method {
                    let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                    if method.server_streaming() && !method.client_streaming() {
                        streams.insert(path.clone());
                    }
                    all.insert(path);
                }
            }
        }
        let ours = |path: &&String| path.starts_with("/lockgate.v1.");
        assert_eq!(streams.iter().filter(ours).map(String::as_str).collect::<Vec<_>>(), STREAMS);
        assert!(LONG.iter().all(|path| all.contains(*path)), "{LONG:?} in {all:?}");
    }
}
