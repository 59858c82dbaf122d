//! Calls behind circuit breakers and a deadline.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::breaker::BreakerSettings;
use lockgate_ports::{BreakerMove, BreakerView, Clock, Counters};
use tonic::{Code, Response, Status};

use crate::breakers::{BreakerName, KernelBreakers};

/// Bytes kept of the kernel's error message.
const ERROR_BYTES_MAX: usize = 500;

/// Why a call has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum CallFailure {
    /// The kernel answers and refuses this request; a retry would not help.
    #[error("the safety kernel refused the question: {0}")]
    Refused(Arc<str>),
    /// The kernel did not answer, or failed.
    #[error("safety kernel {0}")]
    Failed(Arc<str>),
    /// The kernel was not asked, because too many calls failed before.
    #[error("safety kernel circuit open")]
    CircuitOpen,
    /// The number of verdicts differs from the number of requests.
    #[error("the safety kernel gave {given} verdicts for {asked} questions")]
    Miscounted { asked: usize, given: usize },
}

pub(crate) struct GuardedCall {
    name: &'static str,
    breakers: KernelBreakers,
}

impl GuardedCall {
    pub(crate) fn new(
        name: BreakerName,
        clock: Arc<dyn Clock>,
        settings: BreakerSettings,
        counters: Option<Arc<dyn Counters>>,
    ) -> Self {
        Self { name: name.here, breakers: KernelBreakers::new(name, clock, settings, counters) }
    }

    /// Whether a call would be allowed now.
    pub(crate) fn lets_through(&self) -> bool {
        self.breakers.lets_through()
    }

    /// Makes the call, unless the breaker is open.
    pub(crate) async fn call<T>(
        &self,
        within: Duration,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, CallFailure> {
        let admitted = self.breakers.ask().await.ok_or(CallFailure::CircuitOpen)?;
        let failed = |why: &str| {
            let why: Arc<str> = why[..why.floor_char_boundary(ERROR_BYTES_MAX)].into();
            (Err(CallFailure::Failed(Arc::clone(&why))), Err(why))
        };
        let (answer, result) = match tokio::time::timeout(within, call).await {
            Ok(Ok(answer)) => (Ok(answer.into_inner()), Ok(())),
            // A refused request does not count as a failure, because the kernel can answer others.
            Ok(Err(status)) if matches!(status.code(), Code::InvalidArgument | Code::OutOfRange) => {
                tracing::warn!(breaker = self.name, %status, "the safety kernel refused a question");
                (Err(CallFailure::Refused(status.message().into())), Ok(()))
            }
            Ok(Err(status)) if status.code() == Code::Unavailable => failed(&format!("unreachable: {}", status.message())),
            Ok(Err(status)) => failed(&format!("failed with {:?}: {}", status.code(), status.message())),
            Err(_) => failed(&format!("unreachable: no answer within {within:?}")),
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
