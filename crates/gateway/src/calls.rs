//! How many calls are under way at once, and how long each may take. A stream holds a permit until its headers are
//! sent; an unauthenticated health watch holds it until it closes.

mod room;
mod stream_deadline;
mod timely;

use std::future::Future;
use std::time::Duration;

use axum::body::Body;
use http::{HeaderMap, HeaderName, Request, Response};
use tokio::time::Instant;

use room::{CallPermit, CallPool, Who};

pub(crate) use timely::{SentLate, Timely};

/// Calls under way at once. Each may hold a body of its own, so this bounds memory; a server that is this far behind only
/// gets further behind with more.
pub(crate) const CALLS_MAX: usize = 2_048;
/// The longest answer is that of a walk over the whole audit trail.
const LONGEST: Duration = Duration::from_secs(300);
/// Calls that work at the pace that their caller asks for.
const PACED: [&str; 2] = ["/lockgate.v1.Scheduler/ReplayDeadLetters", "/v1/dead-letters:replay"];
/// As many dead letters as one call replays, at one a second.
const PACED_LONGEST: Duration = Duration::from_secs(100_000);
/// Calls of `grpc.health.v1.Health` under way at once. They need no credential, so they have places of their own: strangers
/// must not take those of others, and liveness probes must be answered when it has the most to do.
const STRANGERS_MAX: usize = 256;
/// Streams of `grpc.health.v1.Health/Watch` that are open: every client that balances its load by itself may hold one.
const WATCHERS_MAX: usize = 1_024;
/// Their question is a few bytes long and its answer is at hand, so what takes longer is a question that never ends.
const STRANGERS_LONGEST: Duration = Duration::from_secs(5);
/// The REST counterpart of gRPC's `grpc-timeout`.
static TIMEOUT_MS: HeaderName = HeaderName::from_static("x-lockgate-timeout-ms");

/// Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct CallLimits {
    room: CallPool,
    strangers: CallPool,
    watchers: CallPool,
}

/// What is asked for: each kind has places of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallKind {
    Call,
    /// One that its caller may ask to be slow.
    Paced,
    /// Whether the process lives, over REST: nothing of the request is kept.
    Probe,
    /// A liveness probe over gRPC, where a message is read first.
    Check,
    /// A liveness probe as a stream.
    Watch,
}

/// Why a call was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallRefusal {
    /// Too many are under way.
    Crowded,
    /// Too many of this caller's own are under way.
    OwnShare,
    /// The client's time, or the longest there is, was over. What was committed by then stays.
    Late,
    /// The client's time cannot be read.
    BadTimeoutHeader,
}

impl CallRefusal {
    /// Part of the API.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Crowded | Self::OwnShare => "overloaded",
            Self::Late => "deadline_exceeded",
            Self::BadTimeoutHeader => "invalid_argument",
        }
    }

    pub(crate) const fn retry_after(self) -> Option<Duration> {
        match self {
            Self::Crowded | Self::OwnShare => Some(Duration::from_secs(1)),
            Self::Late | Self::BadTimeoutHeader => None,
        }
    }

    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Crowded => "too many calls are under way; come back in a second",
            Self::OwnShare => {
                "too many of your own calls are under way, and the places that are left are for other callers; wait until \
                 some of yours are answered, or send several jobs in one call"
            }
            Self::Late => "the time for this call was over; what was stored by then stays, and is found again by its key",
            Self::BadTimeoutHeader => "grpc-timeout or x-lockgate-timeout-ms must be a whole number of at least 1",
        }
    }
}

impl CallLimits {
    pub(crate) fn new(max: usize) -> Self {
        Self { room: CallPool::new(max), strangers: CallPool::new(STRANGERS_MAX), watchers: CallPool::new(WATCHERS_MAX) }
    }

    /// For callers inside this process: no share per client is needed.
    pub(crate) fn unshared(max: usize) -> Self {
        Self { room: CallPool::unshared(max), ..Self::new(max) }
    }

    /// Answers one call, unless it is one too many or takes too long.
    pub(crate) async fn answer<F, E>(&self, request: Request<Body>, next: impl FnOnce(Request<Body>) -> F) -> CallResult<E>
    where
        F: Future<Output = Result<Response<Body>, E>>,
    {
        let kind = CallKind::of(request.uri().path());
        let place = self.enter(kind, &request)?;
        let said = said_over_grpc(request.headers()).map_err(|()| CallRefusal::BadTimeoutHeader)?;
        let within = patience(request.headers(), said, kind.longest()).ok_or(CallRefusal::BadTimeoutHeader)?;
        let until = said.and_then(|span| Instant::now().checked_add(span));
        let answered = tokio::time::timeout(within, next(request)).await.map_err(|_| CallRefusal::Late)?;
        // The head of a stream comes at once; the client's time is for all of it.
        let answered = match until {
            Some(until) => answered.map(|response| stream_deadline::ending_at(until, response)),
            None => answered,
        };
        Ok(match place {
            Some(place) if kind == CallKind::Watch => answered.map(|response| place.until_the_end_of(response)),
            _ => answered,
        })
    }

    fn enter(&self, kind: CallKind, request: &Request<Body>) -> Result<Option<CallPermit>, CallRefusal> {
        let room = match kind {
            CallKind::Call | CallKind::Paced => &self.room,
            CallKind::Check => &self.strangers,
            CallKind::Watch => &self.watchers,
            CallKind::Probe => return Ok(None),
        };
        room.enter(Who::of(request.extensions())).map(Some)
    }
}

type CallResult<E> = Result<Result<Response<Body>, E>, CallRefusal>;

impl CallKind {
    fn of(path: &str) -> Self {
        match path.strip_prefix("/grpc.health.v1.Health/") {
            Some("Watch") => Self::Watch,
            Some(_) => Self::Check,
            None if matches!(path, "/healthz" | "/readyz") => Self::Probe,
            None if PACED.contains(&path) => Self::Paced,
            None => Self::Call,
        }
    }

    /// Until the answer begins.
    const fn longest(self) -> Duration {
        match self {
            Self::Call | Self::Probe => LONGEST,
            Self::Paced => PACED_LONGEST,
            Self::Check | Self::Watch => STRANGERS_LONGEST,
        }
    }
}

/// The time that a gRPC client gives the whole call. An error if it cannot be read.
fn said_over_grpc(headers: &HeaderMap) -> Result<Option<Duration>, ()> {
    let said = headers.get(HeaderName::from_static("grpc-timeout"));
    said.map(|value| grpc_timeout(value.to_str().unwrap_or_default()).ok_or(())).transpose()
}

/// How long the client waits for the answer to begin. None if it says so in a way that cannot be read.
fn patience(headers: &HeaderMap, grpc: Option<Duration>, longest: Duration) -> Option<Duration> {
    let said = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let rest = match said(&TIMEOUT_MS) {
        Some(text) => Some(Duration::from_millis(whole(text)?)),
        None => None,
    };
    Some(grpc.into_iter().chain(rest).fold(longest, Duration::min))
}

/// At most eight digits and a unit, as gRPC has it.
fn grpc_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let count = whole(digits).filter(|_| digits.len() <= 8)?;
    Some(match unit {
        "H" => Duration::from_secs(count * 3600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
}

fn whole(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| digits && *number > 0)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::peer::PeerAddress;

    fn request(path: &str, headers: &[(&str, &str)]) -> Request<Body> {
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).expect("a request")
    }

    async fn at_once(_: Request<Body>) -> Result<Response<Body>, Infallible> {
        Ok(Response::new(Body::empty()))
    }

    #[tokio::test]
    async fn one_too_many_is_told_so_and_probes_are_not() {
        let calls = CallLimits::new(1);
        let inner = calls.clone();
        let outer = calls.answer(request("/v1/jobs", &[]), |_| async move {
            let second = inner.answer(request("/v1/jobs", &[]), at_once).await;
            assert_eq!(second.err(), Some(CallRefusal::Crowded));
            assert!(inner.answer(request("/readyz", &[]), at_once).await.is_ok());
            Ok::<_, Infallible>(Response::new(Body::empty()))
        });
        assert!(outer.await.is_ok());
        assert!(calls.answer(request("/v1/jobs", &[]), at_once).await.is_ok(), "the place is free again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_ends_when_its_client_stops_waiting() {
        let calls = CallLimits::new(9);
        for (path, name, value, millis) in [
            ("/v1/jobs", "grpc-timeout", "50m", 50),
            ("/v1/jobs", "grpc-timeout", "2S", 2_000),
            ("/v1/jobs", "x-lockgate-timeout-ms", "70", 70),
            ("/v1/jobs", "x", "y", 300_000),
            ("/v1/dead-letters:replay", "x", "y", 100_000_000),
            ("/lockgate.v1.Scheduler/ReplayDeadLetters", "grpc-timeout", "2S", 2_000),
            ("/grpc.health.v1.Health/Check", "grpc-timeout", "9S", 5_000),
            ("/grpc.health.v1.Health/Watch", "x", "y", 5_000),
        ] {
            let begun = tokio::time::Instant::now();
            let never = |_| std::future::pending::<Result<Response<Body>, Infallible>>();
            let ended = calls.answer(request(path, &[(name, value)]), never).await;
            assert_eq!((ended.err(), begun.elapsed().as_millis()), (Some(CallRefusal::Late), millis));
        }
        for (name, value) in
            [("grpc-timeout", "5"), ("grpc-timeout", "S"), ("grpc-timeout", "123456789S"), ("x-lockgate-timeout-ms", "0")]
        {
            let ended = calls.answer(request("/v1/jobs", &[(name, value)]), at_once).await;
            assert_eq!(ended.err(), Some(CallRefusal::BadTimeoutHeader), "{name} {value}");
        }
    }

    #[tokio::test]
    async fn nobody_takes_the_places_of_others() {
        let calls = CallLimits::new(8);
        let from = |address: [u8; 4]| {
            let mut request = request("/v1/jobs", &[]);
            request.extensions_mut().insert(PeerAddress((address, 7_u16).into()));
            request
        };
        let never = |_: Request<Body>| std::future::pending::<Result<Response<Body>, Infallible>>();
        let mut under_way: Vec<_> = (0..2).map(|_| Box::pin(calls.answer(from([10, 0, 0, 1]), never))).collect();
        for call in &mut under_way {
            assert!(futures::poll!(call).is_pending());
        }
        let refused = calls.answer(from([10, 0, 0, 1]), at_once).await.err();
        assert_eq!(refused, Some(CallRefusal::OwnShare));
        assert_eq!(refused.map(CallRefusal::code), Some(CallRefusal::Crowded.code()));
        assert!(calls.answer(from([10, 0, 0, 2]), at_once).await.is_ok());
        drop(under_way);
        assert!(calls.answer(from([10, 0, 0, 1]), at_once).await.is_ok());

        let mut local: Vec<_> = (0..8).map(|_| Box::pin(calls.answer(from([127, 0, 0, 1]), never))).collect();
        for call in &mut local {
            assert!(futures::poll!(call).is_pending(), "this machine's own address may be a proxy's");
        }

        let ours = CallLimits::unshared(8);
        let mut all: Vec<_> = (0..8).map(|_| Box::pin(ours.answer(from([10, 0, 0, 1]), never))).collect();
        for call in &mut all {
            assert!(futures::poll!(call).is_pending(), "schedulers may have all of a kernel's places");
        }
        assert_eq!(ours.answer(from([10, 0, 0, 2]), at_once).await.err(), Some(CallRefusal::Crowded));
    }

    #[tokio::test]
    async fn strangers_have_places_of_their_own() {
        let calls = CallLimits::new(1);
        let check = || request("/grpc.health.v1.Health/Check", &[]);
        let never = |_: Request<Body>| std::future::pending::<Result<Response<Body>, Infallible>>();
        let mut asking: Vec<_> = (0..STRANGERS_MAX).map(|_| Box::pin(calls.answer(check(), never))).collect();
        for call in &mut asking {
            assert!(futures::poll!(call).is_pending());
        }
        assert_eq!(calls.answer(check(), at_once).await.err(), Some(CallRefusal::Crowded));
        assert!(calls.answer(request("/v1/jobs", &[]), at_once).await.is_ok(), "nobody else is kept waiting");
        assert!(calls.answer(request("/grpc.health.v1.Health/Watch", &[]), at_once).await.is_ok());
        drop(asking);
        assert!(calls.answer(check(), at_once).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn who_watches_keeps_a_place_until_the_stream_ends() {
        let calls = CallLimits::new(1);
        let watch = async || calls.answer(request("/grpc.health.v1.Health/Watch", &[]), at_once).await;
        let mut watching = Vec::new();
        for _ in 0..WATCHERS_MAX {
            watching.push(watch().await.expect("a place"));
        }
        tokio::time::advance(LONGEST).await;
        assert_eq!(watch().await.err(), Some(CallRefusal::Crowded));
        drop(watching.pop());
        assert!(watch().await.is_ok(), "the place is free again");
    }
}
