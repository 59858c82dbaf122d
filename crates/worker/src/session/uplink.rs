//! The outgoing half of one stream. The connection pulls: a message is everything that arrived while the last one was sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use lockgate_proto::v1::WorkerMessage;

use super::state::SessionState;

/// The phase of the current stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StreamPhase {
    #[default]
    Away,
    /// Hello is the next message.
    Greeting,
    /// Hello is sent; nothing else may be sent before the server's welcome.
    Greeted,
    Open,
}

/// Yields the messages of one stream. Ends with its stream, so that two streams never send for one session.
pub(crate) struct Uplink {
    session_state: Arc<SessionState>,
    stream: u64,
}

impl Uplink {
    pub(crate) fn new(session_state: Arc<SessionState>, stream: u64) -> Self {
        Self { session_state, stream }
    }
}

impl Stream for Uplink {
    type Item = WorkerMessage;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<WorkerMessage>> {
        self.session_state.poll_outgoing(self.stream, cx)
    }
}
