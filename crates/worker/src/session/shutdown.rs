//! Draining: the worker leaves without losing or doubling work.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;

use super::state::SessionState;
use crate::error::WorkerError;

/// How long an aborted handler may take to reach its next await point.
const ABORT_WITHIN: Duration = Duration::from_secs(1);
/// How long the last results may wait for their acknowledgement, and the worker for the server's permission to leave.
const DISMISSED_WITHIN: Duration = Duration::from_secs(5);
/// How long the server may take to end its half of the stream.
const CLOSED_WITHIN: Duration = Duration::from_secs(2);

type Links = JoinSet<Result<(), WorkerError>>;

/// Takes no more work, lets running attempts finish, gives the rest back, and leaves when the server has every result.
pub(crate) async fn drain(
    session_state: &Arc<SessionState>,
    links: &mut Links,
    drain_timeout: Duration,
) -> Result<(), WorkerError> {
    tracing::info!(?drain_timeout, "draining");
    session_state.begin_drain();
    if timeout(drain_timeout, session_state.all_idle()).await.is_err() {
        give_back(session_state).await;
    }
    if timeout(DISMISSED_WITHIN, session_state.dismissed()).await.is_err() {
        tracing::warn!(results = session_state.unacknowledged(), "worker stops with unacknowledged results");
    }
    session_state.close();
    match timeout(CLOSED_WITHIN, links.join_next()).await {
        Ok(ended) => ending(ended),
        Err(_) => Ok(()),
    }
}

async fn give_back(session_state: &SessionState) {
    session_state.abort_all();
    if timeout(ABORT_WITHIN, session_state.all_idle()).await.is_err() {
        let stuck = session_state.write_off();
        tracing::warn!(stuck, "handlers that never wait were reported as interrupted while they still run");
    }
}

/// The worker's result, by how the link ended.
pub(crate) fn ending(ended: Option<Result<Result<(), WorkerError>, JoinError>>) -> Result<(), WorkerError> {
    match ended {
        Some(Ok(result)) => result,
        Some(Err(error)) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Ok(()),
        },
        None => Ok(()),
    }
}
