//! The connection for messages that must arrive. Doorbells have their own connection, so that neither waits behind the
//! other.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::ContextBuilder;
use lockgate_ports::Entropy;
use tokio::sync::watch;

use crate::error::ConnectError;
use crate::link::{ConnectionHealth, Purpose, ServerLink};
use crate::options::Options;
use crate::subscription::{Lapsed, Subscription};

/// Publishes that wait for an acknowledgement. Many thousands would starve the consumers of their stream.
const UNACKNOWLEDGED_MAX: usize = 1_000;
/// The deadline of acknowledgements and of questions about streams. Long, because a server under load answers late.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(5);
const OUTGOING: usize = 2_048;
/// More than is ever requested from a stream: further messages would exceed the time for their acknowledgement.
const INCOMING: usize = 4_096;

pub struct Transport {
    link: ServerLink,
    jetstream: Context,
    connects: watch::Receiver<u64>,
    installation: String,
    queue_group: Arc<str>,
    entropy: Arc<dyn Entropy>,
}

impl Transport {
    /// Waits briefly for the servers, and keeps trying to connect after that.
    pub async fn connect(options: &Options, entropy: Arc<dyn Entropy>) -> Result<Self, ConnectError> {
        let purpose = Purpose {
            name: format!("lockgate {} messages", options.installation),
            unserved: options.subject("unserved")?,
            echo: true,
            outgoing: OUTGOING,
            incoming: INCOMING,
        };
        let queue_group = options.checked_queue_group()?;
        let (connected, connects) = watch::channel(0);
        let count = move || connected.send_modify(|connects| *connects += 1);
        let link = ServerLink::open(options, purpose, Arc::clone(&entropy), count).await?;
        let jetstream = ContextBuilder::new()
            .timeout(ACKNOWLEDGED_WITHIN)
            .ack_timeout(ACKNOWLEDGED_WITHIN)
            .max_ack_inflight(UNACKNOWLEDGED_MAX)
            .backpressure_on_inflight(true)
            .build(link.client().clone());
        link.settled().await;
        Ok(Self { link, jetstream, connects, installation: options.installation.clone(), queue_group, entropy })
    }

    pub fn health(&self) -> ConnectionHealth {
        self.link.health()
    }

    pub(crate) fn client(&self) -> &Client {
        self.link.client()
    }

    /// Subscribes to every message of the subject.
    pub(crate) async fn subscribe(&self, subject: String) -> Result<Subscription, ConnectError> {
        self.link.subscribe(subject, None).await
    }

    /// Subscribes in turn with the other processes of the queue group.
    pub(crate) async fn subscribe_in_turn(&self, subject: &str) -> Result<Subscription, ConnectError> {
        self.link.subscribe(subject.to_owned(), Some(&self.queue_group)).await
    }

    pub(crate) fn lapsed(&self) -> Lapsed {
        self.link.lapsed().clone()
    }

    pub(crate) fn jetstream(&self) -> &Context {
        &self.jetstream
    }

    /// Changes with each new connection and after missed messages: state that the servers had for this process may be gone.
    pub(crate) fn connects(&self) -> watch::Receiver<u64> {
        self.connects.clone()
    }

    pub(crate) fn installation(&self) -> &str {
        &self.installation
    }

    pub(crate) fn entropy(&self) -> &dyn Entropy {
        &*self.entropy
    }

    /// Waits briefly until the subscriptions made so far are in force, unless the servers are known to be unreachable.
    pub(crate) async fn settled(&self) {
        if self.health() == ConnectionHealth::Connected {
            self.link.settled().await;
        }
    }
}
