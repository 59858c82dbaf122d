//! The outgoing half of one stream. The connection pulls: a message is everything that arrived while the last one was sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use lockgate_proto::v1::WorkerMessage;
use tokio_stream::Stream;

use super::crew::Crew;

/// Where the current stream stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    #[default]
    Away,
    /// Hello is the next message.
    Greeting,
    /// Hello is sent; nothing else before the server's welcome.
    Greeted,
    Open,
}

/// Yields the messages of one stream. Ends when its stream is over, so that no two streams can speak for one session.
pub(crate) struct Uplink {
    crew: Arc<Crew>,
    stream: u64,
}

impl Uplink {
    pub(crate) fn new(crew: Arc<Crew>, stream: u64) -> Self {
        Self { crew, stream }
    }
}

impl Stream for Uplink {
    type Item = WorkerMessage;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<WorkerMessage>> {
        self.crew.poll_outgoing(self.stream, cx)
    }
}
