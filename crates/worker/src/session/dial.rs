//! Opens a stream to a server.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use lockgate_proto::v1::ServerMessage;
use lockgate_proto::v1::worker_client::WorkerClient;
use tokio::time::{Instant, timeout};
use tonic::transport::Endpoint;
use tonic::{Code, Status};

use super::state::SessionState;
use super::uplink::Uplink;
use crate::error::chain;
use lockgate_tls::grpc::{Bearer, BearerChannel};

/// A server that does not answer a connect, a hello or a beat for this long is given up for another address.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// The largest message accepted from the server; larger than any that it sends, so it only protects memory.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// The server's messages on one stream.
pub(crate) type Inbound = BoxStream<'static, Result<ServerMessage, Status>>;

/// Why a stream ended.
pub(crate) enum Over {
    /// The stream was not attached, or not any more.
    Lost(String),
    Refused(Status),
    /// The credential is missing, expired or not sufficient. Waiting does not help.
    Barred(Status),
}

impl From<Status> for Over {
    fn from(status: Status) -> Self {
        match status.code() {
            Code::Unauthenticated | Code::PermissionDenied => Self::Barred(status),
            Code::InvalidArgument | Code::Unimplemented => Self::Refused(status),
            _ => Self::Lost(format!("{:?}: {}", status.code(), status.message())),
        }
    }
}

/// How servers are reached. Tests use simulated servers, with which time can be paused.
#[async_trait]
pub(crate) trait Dial: Send + Sync {
    /// Opens a stream for the session. Also returns a time before which the server cannot have received the hello.
    async fn open(&self, session_state: &Arc<SessionState>, address: &Endpoint) -> Result<(Inbound, Instant), Over>;
}

/// Over the network.
pub(crate) struct Grpc {
    pub bearer: Bearer,
}

#[async_trait]
impl Dial for Grpc {
    async fn open(&self, session_state: &Arc<SessionState>, address: &Endpoint) -> Result<(Inbound, Instant), Over> {
        let connected = timeout(ANSWER_WITHIN, address.connect()).await.map_err(|_| late())?;
        let channel = connected.map_err(|error| Over::Lost(chain(&error)))?;
        let channel = BearerChannel::new(channel, self.bearer.clone());
        session_state.connected(channel.clone());
        let greeted_at = Instant::now();
        let uplink = Uplink::new(session_state.clone(), session_state.open_stream());
        let mut client = WorkerClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let inbound = timeout(ANSWER_WITHIN, client.attach(uplink)).await.map_err(|_| late())??.into_inner();
        Ok((inbound.boxed(), greeted_at))
    }
}

/// The server did not answer.
pub(super) fn late() -> Over {
    Over::Lost(format!("no answer within {ANSWER_WITHIN:?}"))
}
