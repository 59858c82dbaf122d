//! A connection that is renewed for ever, and reports outages.

use std::sync::Arc;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, ConnectOptions, Event, Request, RequestErrorKind};
use lockgate_ports::Entropy;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::error::ConnectError;
use crate::options::{Login, Options, login};
use crate::pace::spread;
use crate::subscription::{Lapsed, Subscription};

/// After this silence on an idle connection the client pings the server. Two unanswered pings mean that the connection is
/// lost, so a hanging server is noticed within three times this.
const PING_EVERY: Duration = Duration::from_secs(2);
/// The deadline of the TCP connection and the server's greeting. A hanging process accepts connections and never greets.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// The deadline of one question to a connected server.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(2);
const RETRY_FIRST: Duration = Duration::from_millis(100);
/// The longest delay between tries, which bounds the recovery time, together with `CONNECT_WITHIN`.
const RETRY_MAX: Duration = Duration::from_secs(3);

/// Whether messages get through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionHealth {
    Connected,
    /// With the latest failure. The client keeps trying to connect.
    Away(String),
}

/// The purpose of a connection.
pub(crate) struct Purpose {
    /// Shown in the server's list of connections.
    pub(crate) name: String,
    /// A subject of this installation without a subscriber.
    pub(crate) unserved: String,
    /// Whether this process receives its own messages.
    pub(crate) echo: bool,
    /// The most messages that wait to be written.
    pub(crate) outgoing: usize,
    /// The most messages of one subscription that wait to be read.
    pub(crate) incoming: usize,
}

pub(crate) struct ServerLink {
    line: PingableClient,
    health: watch::Receiver<ConnectionHealth>,
    lapsed: Lapsed,
    /// Ends with the link.
    _watching: JoinSet<()>,
}

impl ServerLink {
    /// `missed` is called whenever messages may have been missed: after every connect, when subscriptions are in force
    /// again, and when they came faster than they were read.
    pub(crate) async fn open(
        options: &Options,
        purpose: Purpose,
        entropy: Arc<dyn Entropy>,
        missed: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, ConnectError> {
        let (events, happened) = mpsc::unbounded_channel();
        let client = connect(options, &purpose, entropy, events).await?;
        let line = PingableClient { client, unserved: purpose.unserved };
        let (told, health) = watch::channel(ConnectionHealth::Away("not connected yet".to_owned()));
        let mut watching = JoinSet::new();
        watching.spawn(HealthWatch { line: line.clone(), told, missed }.run(happened));
        Ok(Self { line, health, lapsed: Lapsed::default(), _watching: watching })
    }

    /// Waits briefly until the subscriptions made so far are in force. Everything works without NATS, only more slowly, so a
    /// start must not wait for it.
    pub(crate) async fn settled(&self) {
        let mut health = self.health.clone();
        let in_force = async {
            // Fails only without receivers, and then no caller waits.
            let _ = health.wait_for(|health| *health == ConnectionHealth::Connected).await;
            self.line.answered().await
        };
        let _ = tokio::time::timeout(CONNECT_WITHIN, in_force).await;
    }

    pub(crate) fn client(&self) -> &Client {
        &self.line.client
    }

    /// A subscription that is renewed when it ends.
    pub(crate) async fn subscribe(&self, subject: String, queue: Option<&str>) -> Result<Subscription, ConnectError> {
        let opened = Subscription::open(self.client(), subject, queue.map(str::to_owned), self.lapsed.clone()).await;
        opened.map_err(|error| ConnectError::Client(error.to_string()))
    }

    pub(crate) fn lapsed(&self) -> &Lapsed {
        &self.lapsed
    }

    /// A connection with an ended subscription is unhealthy, because its messages do not come in.
    pub(crate) fn health(&self) -> ConnectionHealth {
        let health = self.health.borrow().clone();
        match (&health, self.lapsed.why()) {
            (ConnectionHealth::Connected, Some(why)) => ConnectionHealth::Away(why),
            _ => health,
        }
    }
}

async fn connect(
    options: &Options,
    purpose: &Purpose,
    entropy: Arc<dyn Entropy>,
    events: mpsc::UnboundedSender<Event>,
) -> Result<Client, ConnectError> {
    let mut connect = ConnectOptions::new()
        .name(&purpose.name)
        .retry_on_initial_connect()
        .max_reconnects(None)
        .ping_interval(PING_EVERY)
        .connection_timeout(CONNECT_WITHIN)
        .request_timeout(Some(ANSWER_WITHIN))
        .client_capacity(purpose.outgoing)
        .subscription_capacity(purpose.incoming)
        .reconnect_delay_callback(move |attempt| retry_after(attempt, &*entropy))
        .event_callback(move |event| {
            let _ = events.send(event);
            std::future::ready(())
        });
    if !purpose.echo {
        connect = connect.no_echo();
    }
    dial(connect, options).await
}

/// Connects with the login that an address may contain.
pub(crate) async fn dial(connect: ConnectOptions, options: &Options) -> Result<Client, ConnectError> {
    let connect = match login(&options.addresses()?) {
        Some(Login::User { name, password }) => connect.user_and_password(name, password),
        Some(Login::Token(token)) => connect.token(token),
        None => connect,
    };
    let connect = match &options.tls {
        Some(tls) => connect.require_tls(true).tls_client_config(tls.config()),
        // Discovered servers of the cluster may be on other machines, and would be reached without TLS.
        None => connect.ignore_discovered_servers(),
    };
    connect.connect(options.places()?).await.map_err(|error| options.refused(&error))
}

/// The first try is immediate; each later one waits twice as long. Jitter keeps processes that lost one server from
/// reconnecting at once.
fn retry_after(attempt: usize, entropy: &dyn Entropy) -> Duration {
    let Some(doublings) = attempt.checked_sub(2) else { return Duration::ZERO };
    let doublings = u32::try_from(doublings).unwrap_or(u32::MAX).min(10);
    let span = RETRY_FIRST.saturating_mul(1 << doublings).min(RETRY_MAX);
    spread(span, entropy)
}

/// A client, and a way to ask the server for a sign of life.
#[derive(Clone)]
struct PingableClient {
    client: Client,
    unserved: String,
}

impl PingableClient {
    fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// The server answers in order, so an answer means that it has processed everything sent before.
    async fn answered(&self) -> bool {
        match self.client.send_request(self.unserved.clone(), Request::new()).await {
            Ok(_) => true,
            Err(error) => error.kind() == RequestErrorKind::NoResponders,
        }
    }
}

struct HealthWatch<M> {
    line: PingableClient,
    told: watch::Sender<ConnectionHealth>,
    missed: M,
}

impl<M: Fn() + Send + Sync> HealthWatch<M> {
    async fn run(self, mut happened: mpsc::UnboundedReceiver<Event>) {
        while let Some(event) = happened.recv().await {
            match event {
                Event::Connected => self.connected().await,
                Event::Disconnected => self.away("the connection was lost".to_owned()),
                Event::Closed => self.away("the connection was closed".to_owned()),
                // This event also reports trouble that did not end the connection.
                Event::ClientError(error) if !self.line.is_connected() => self.away(error.to_string()),
                Event::ClientError(error) => tracing::warn!(%error, "NATS client error"),
                Event::ServerError(error) => tracing::warn!(%error, "NATS server error"),
                Event::SlowConsumer(_) => (self.missed)(),
                Event::LameDuckMode | Event::Draining => {}
            }
        }
    }

    /// The client renews its subscriptions before anything else, so an answer means that they are in force. The event
    /// arrives before the client's state changes, so the state cannot be used.
    async fn connected(&self) {
        while !self.line.answered().await {
            if !self.line.is_connected() {
                return;
            }
        }
        self.told.send_replace(ConnectionHealth::Connected);
        (self.missed)();
    }

    fn away(&self, why: String) {
        tracing::warn!(why, "NATS connection lost");
        self.told.send_replace(ConnectionHealth::Away(why));
    }
}

#[cfg(test)]
mod tests {
    use lockgate_model::SeededEntropy;

    use super::*;

    #[test]
    fn tries_come_slower_up_to_a_few_seconds_and_never_in_step() {
        let entropy = SeededEntropy::new(1);
        assert_eq!(retry_after(1, &entropy), Duration::ZERO);
        for attempt in 2..100 {
            let after = retry_after(attempt, &entropy);
            assert!(after >= RETRY_FIRST / 2 && after <= RETRY_MAX, "{attempt}: {after:?}");
        }
        let late: std::collections::BTreeSet<Duration> = (0..16).map(|_| retry_after(50, &entropy)).collect();
        assert!(late.len() > 8 && late.iter().all(|after| *after >= RETRY_MAX / 2), "{late:?}");
    }
}
