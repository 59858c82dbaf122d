//! How long a call may take: a server that accepts a connection and then says nothing must not keep a script waiting.
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

/// Unless the caller says otherwise. The server gives up on its store after 2 s, and putting a policy in force takes a few of those.
pub(crate) const CALL_WITHIN: &str = "30s";
/// So many times longer has a call that works through a list of any length.
const LONG_FACTOR: u32 = 120;
/// Calls whose work grows with what is stored, or that are asked to be slow.
const LONG: [&str; 3] =
    ["/lockgate.v1.Admin/EraseTenant", "/lockgate.v1.Admin/VerifyAudit", "/lockgate.v1.Scheduler/ReplayDeadLetters"];
/// Calls that answer with a stream.
const STREAMS: [&str; 3] =
    ["/lockgate.v1.Orchestrator/WatchDAGRun", "/lockgate.v1.Scheduler/WatchJob", "/lockgate.v1.Scheduler/WatchJobLogs"];

/// A server that is busy answers a ping late, and is there all the same.
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

/// With a source, like every error of the connection.
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
