//! How many calls are under way at once, and how long each may take. A stream counts until it begins.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{HeaderMap, HeaderName, Request, Response};
use tokio::sync::Semaphore;

/// Calls under way at once. Each may hold a body of its own, so this bounds memory; a server that is this far behind only
/// gets further behind with more.
pub(crate) const CALLS_MAX: usize = 2_048;
/// The longest answer is that of a walk over the whole audit trail.
const LONGEST: Duration = Duration::from_secs(300);
/// The REST counterpart of gRPC's `grpc-timeout`.
static TIMEOUT_MS: HeaderName = HeaderName::from_static("x-lockgate-timeout-ms");

/// Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    room: Arc<Semaphore>,
}

/// Why a call was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// Too many are under way.
    Crowded,
    /// The client's time, or the longest there is, was over. What was committed by then stays.
    Late,
    /// The client's time cannot be read.
    NoTime,
}

impl Unanswered {
    /// Part of the API.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Crowded => "overloaded",
            Self::Late => "deadline_exceeded",
            Self::NoTime => "invalid_argument",
        }
    }

    pub(crate) const fn retry_after(self) -> Option<Duration> {
        match self {
            Self::Crowded => Some(Duration::from_secs(1)),
            Self::Late | Self::NoTime => None,
        }
    }

    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Crowded => "too many calls are under way; come back in a second",
            Self::Late => "the time for this call was over; what was stored by then stays, and is found again by its key",
            Self::NoTime => "grpc-timeout or x-lockgate-timeout-ms must be a whole number of at least 1",
        }
    }
}

impl Calls {
    pub(crate) fn new(max: usize) -> Self {
        Self { room: Arc::new(Semaphore::new(max)) }
    }

    /// Answers one call, unless it is one too many or takes too long.
    pub(crate) async fn answer<F, E>(&self, request: Request<Body>, next: impl FnOnce(Request<Body>) -> F) -> Answered<E>
    where
        F: Future<Output = Result<Response<Body>, E>>,
    {
        // Whoever looks whether the process lives must be answered when it has the most to do.
        let _place = match is_probe(request.uri().path()) {
            true => None,
            false => Some(self.room.clone().try_acquire_owned().map_err(|_| Unanswered::Crowded)?),
        };
        let within = patience(request.headers()).ok_or(Unanswered::NoTime)?;
        tokio::time::timeout(within, next(request)).await.map_err(|_| Unanswered::Late)
    }
}

type Answered<E> = Result<Result<Response<Body>, E>, Unanswered>;

fn is_probe(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz") || path.starts_with("/grpc.health.v1.Health/")
}

/// How long the client waits. None if it says so in a way that cannot be read.
fn patience(headers: &HeaderMap) -> Option<Duration> {
    let said = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let grpc = match said(&HeaderName::from_static("grpc-timeout")) {
        Some(text) => Some(grpc_timeout(text)?),
        None => None,
    };
    let rest = match said(&TIMEOUT_MS) {
        Some(text) => Some(Duration::from_millis(whole(text)?)),
        None => None,
    };
    Some(grpc.into_iter().chain(rest).fold(LONGEST, Duration::min))
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
        let calls = Calls::new(1);
        let inner = calls.clone();
        let outer = calls.answer(request("/v1/jobs", &[]), |_| async move {
            let second = inner.answer(request("/v1/jobs", &[]), at_once).await;
            assert_eq!(second.err(), Some(Unanswered::Crowded));
            assert!(inner.answer(request("/readyz", &[]), at_once).await.is_ok());
            Ok::<_, Infallible>(Response::new(Body::empty()))
        });
        assert!(outer.await.is_ok());
        assert!(calls.answer(request("/v1/jobs", &[]), at_once).await.is_ok(), "the place is free again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_ends_when_its_client_stops_waiting() {
        let calls = Calls::new(9);
        for (name, value, millis) in [
            ("grpc-timeout", "50m", 50),
            ("grpc-timeout", "2S", 2_000),
            ("x-lockgate-timeout-ms", "70", 70),
            ("x", "y", 300_000),
        ] {
            let begun = tokio::time::Instant::now();
            let never = |_| std::future::pending::<Result<Response<Body>, Infallible>>();
            let ended = calls.answer(request("/v1/jobs", &[(name, value)]), never).await;
            assert_eq!((ended.err(), begun.elapsed().as_millis()), (Some(Unanswered::Late), millis));
        }
        for (name, value) in
            [("grpc-timeout", "5"), ("grpc-timeout", "S"), ("grpc-timeout", "123456789S"), ("x-lockgate-timeout-ms", "0")]
        {
            let ended = calls.answer(request("/v1/jobs", &[(name, value)]), at_once).await;
            assert_eq!(ended.err(), Some(Unanswered::NoTime), "{name} {value}");
        }
    }
}
