//! A call behind circuit breakers and a deadline.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::breaker::BreakerSettings;
use lockgate_ports::{BreakerMove, BreakerView, Clock, Counters};
use tonic::{Code, Response, Status};

use crate::breakers::{Breakers, Name};

/// Why a call has no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The kernel is there and cannot take this one question; asking again would change nothing.
    Refused(String),
    Nobody,
}

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

    /// Makes the call, unless the breaker is open.
    pub(crate) async fn call<T>(
        &self,
        within: Duration,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, Unanswered> {
        let admitted = self.breakers.ask().await.ok_or(Unanswered::Nobody)?;
        let nobody = |why: String| (Err(Unanswered::Nobody), Err(why.into()));
        let (answer, result) = match tokio::time::timeout(within, call).await {
            Ok(Ok(answer)) => (Ok(answer.into_inner()), Ok(())),
            // No reason to stop asking it others.
            Ok(Err(status)) if matches!(status.code(), Code::InvalidArgument | Code::OutOfRange) => {
                tracing::warn!(breaker = self.name, %status, "the safety kernel refused a question");
                (Err(Unanswered::Refused(status.message().to_owned())), Ok(()))
            }
            Ok(Err(status)) => nobody(format!("{:?}: {}", status.code(), status.message())),
            Err(_) => nobody(format!("no answer within {within:?}")),
        };
        self.breakers.tell(admitted, result).await;
        answer
    }

    pub(crate) async fn refresh(&self) {
        self.breakers.refresh().await;
    }

    pub(crate) fn moves(&self) -> Vec<BreakerMove> {
        self.breakers.moves()
    }

    pub(crate) fn view(&self) -> BreakerView {
        self.breakers.view()
    }
}
