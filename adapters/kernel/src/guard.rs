//! A call behind circuit breakers and a deadline.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::breaker::BreakerSettings;
use lockgate_ports::{BreakerView, Clock, Counters};
use tonic::{Code, Response, Status};

use crate::breakers::{Breakers, Name};

pub(crate) struct Guard {
    name: &'static str,
    breakers: Breakers,
}

impl Guard {
    pub(crate) fn new(
        name: Name,
        clock: Arc<dyn Clock>,
        settings: BreakerSettings,
        counters: Option<Arc<dyn Counters>>,
    ) -> Self {
        Self { name: name.here, breakers: Breakers::new(name, clock, settings, counters) }
    }

    /// Whether a call would be let through now.
    pub(crate) fn lets_through(&self) -> bool {
        self.breakers.lets_through()
    }

    /// Makes the call, unless the breaker is open. None: no answer, for whatever reason.
    pub(crate) async fn call<T>(
        &self,
        within: Duration,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Option<T> {
        let admitted = self.breakers.ask().await?;
        let (answer, result) = match tokio::time::timeout(within, call).await {
            Ok(Ok(answer)) => (Some(answer.into_inner()), Ok(())),
            // The kernel is there and does not like this one question: no reason to stop asking it others.
            Ok(Err(status)) if matches!(status.code(), Code::InvalidArgument | Code::OutOfRange) => {
                tracing::warn!(breaker = self.name, %status, "the safety kernel refused a question");
                (None, Ok(()))
            }
            Ok(Err(status)) => (None, Err(format!("{:?}: {}", status.code(), status.message()).into())),
            Err(_) => (None, Err(format!("no answer within {within:?}").into())),
        };
        self.breakers.tell(admitted, result).await;
        answer
    }

    pub(crate) async fn refresh(&self) {
        self.breakers.refresh().await;
    }

    pub(crate) fn view(&self) -> BreakerView {
        self.breakers.view()
    }
}
