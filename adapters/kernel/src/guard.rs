//! A call behind a circuit breaker and a deadline.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::breaker::{Breaker, BreakerSettings};
use lockgate_ports::{BreakerView, Clock};
use parking_lot::Mutex;
use tonic::{Code, Response, Status};

pub(crate) struct Guard {
    name: &'static str,
    clock: Arc<dyn Clock>,
    inner: Mutex<Guarded>,
}

struct Guarded {
    breaker: Breaker,
    last_error: Option<Arc<str>>,
}

impl Guard {
    pub(crate) fn new(name: &'static str, clock: Arc<dyn Clock>, settings: BreakerSettings) -> Self {
        Self { name, clock, inner: Mutex::new(Guarded { breaker: Breaker::new(settings), last_error: None }) }
    }

    /// Whether a call would be let through now.
    pub(crate) fn lets_through(&self) -> bool {
        let now = self.clock.now();
        self.inner.lock().breaker.opens_until().is_none_or(|until| until <= now)
    }

    /// Makes the call, unless the breaker is open. None: no answer, for whatever reason.
    pub(crate) async fn call<T>(
        &self,
        within: Duration,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Option<T> {
        let ticket = self.inner.lock().breaker.ask(self.clock.now()).ok()?;
        let answer = match tokio::time::timeout(within, call).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            // The kernel is there and does not like this one question: no reason to stop asking it others.
            Ok(Err(status)) if matches!(status.code(), Code::InvalidArgument | Code::OutOfRange) => {
                self.inner.lock().breaker.succeeded(ticket);
                tracing::warn!(breaker = self.name, %status, "the safety kernel refused a question");
                return None;
            }
            Ok(Err(status)) => Err(format!("{:?}: {}", status.code(), status.message())),
            Err(_) => Err(format!("no answer within {within:?}")),
        };
        let mut inner = self.inner.lock();
        let before = inner.breaker.state(self.clock.now());
        let answer = match answer {
            Ok(answer) => {
                inner.breaker.succeeded(ticket);
                Some(answer)
            }
            Err(error) => {
                inner.breaker.failed(ticket, self.clock.now());
                inner.last_error = Some(error.into());
                None
            }
        };
        let after = inner.breaker.state(self.clock.now());
        if before != after {
            let error = inner.last_error.as_deref().unwrap_or_default();
            tracing::warn!(breaker = self.name, from = before.as_str(), to = after.as_str(), error, "circuit breaker moved");
        }
        answer
    }

    pub(crate) fn view(&self) -> BreakerView {
        let inner = self.inner.lock();
        BreakerView {
            name: self.name,
            state: inner.breaker.state(self.clock.now()),
            failures: inner.breaker.failures(),
            open_until: inner.breaker.opens_until(),
            last_error: inner.last_error.clone(),
        }
    }
}
