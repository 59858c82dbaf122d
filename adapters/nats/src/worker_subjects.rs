//! Workers without a stream: they send and receive the messages of a stream over subjects.
//!
//! | subject | from | says |
//! |---|---|---|
//! | `sys.heartbeat` | worker | a hello; one process of all takes it, and holds the worker from then on |
//! | `sys.heartbeat.<address>` | worker | all else but results, to the process whose welcome named this address |
//! | `sys.job.result.<address>` | worker | results, as questions: see [`Doors`](crate::Doors) |
//! | `worker.<id>.jobs` | process | welcomes, assignments, stops, answers to beats |
//!
//! Nothing here is stored: a lost message is repaired by the next beat or the next hello.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Message;
use async_trait::async_trait;
use lockgate_proto::v1;
use prost::Message as _;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::error::ConnectError;
use crate::link::ConnectionHealth;
use crate::subscription::{Delivery, Subscription};
use crate::transport::Transport;

const HEARTBEAT: &str = "sys.heartbeat";
/// How often the listener checks whether messages can come in at all.
const LISTEN_EVERY: Duration = Duration::from_secs(1);
/// The most hellos being answered. Workers repeat the others.
const HELLOS_MAX: usize = 1_024;

/// The gateway that holds the workers.
#[async_trait]
pub trait WorkerHost: Send + Sync {
    /// A worker asks to be held by this process.
    async fn hello(&self, hello: v1::Hello);

    /// A message of a worker to this process.
    fn heard(&self, message: v1::WorkerMessage);

    /// Messages may have been missed, or are being missed.
    fn deaf(&self);
}

/// Listens until stopped or dropped.
pub struct WorkerSubjects {
    stop: watch::Sender<bool>,
    listening: JoinSet<()>,
}

impl WorkerSubjects {
    pub async fn open(transport: Arc<Transport>, address: &str, host: Arc<dyn WorkerHost>) -> Result<Self, ConnectError> {
        let hellos = transport.subscribe_in_turn(HEARTBEAT).await?;
        let words = transport.subscribe(format!("{HEARTBEAT}.{address}")).await?;
        transport.settled().await;
        let (stop, stopping) = watch::channel(false);
        let mut listening = JoinSet::new();
        listening.spawn(Listener { transport, hellos, words, host, answering: JoinSet::new() }.run(stopping));
        Ok(Self { stop, listening })
    }

    /// Waits until the listener ends although it was not stopped. Workers of this process are not heard until it restarts.
    pub async fn ended(&mut self) -> String {
        ended(&mut self.listening, "the listener for workers on NATS").await
    }

    /// Takes no more hellos, and finishes those being answered.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        while self.listening.join_next().await.is_some() {}
    }
}

/// Waits until a task ends; the text says how. Without tasks it never completes.
pub(crate) async fn ended(tasks: &mut JoinSet<()>, what: &str) -> String {
    match tasks.join_next().await {
        Some(Ok(())) => format!("{what} ended by itself"),
        Some(Err(error)) => format!("{what} ended badly: {error}"),
        None => std::future::pending().await,
    }
}

struct Listener {
    transport: Arc<Transport>,
    hellos: Subscription,
    words: Subscription,
    host: Arc<dyn WorkerHost>,
    answering: JoinSet<()>,
}

impl Listener {
    async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut connects = self.transport.connects();
        let mut listen = tokio::time::interval(LISTEN_EVERY);
        listen.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                Ok(()) = connects.changed() => self.host.deaf(),
                _ = listen.tick() => self.listen(),
                heard = self.words.next() => match heard {
                    Delivery::Message(message) => self.hear(&message),
                    Delivery::Again => self.host.deaf(),
                    Delivery::Gone => return,
                },
                heard = self.hellos.next() => match heard {
                    Delivery::Message(message) => self.greet(&message),
                    // Workers without a welcome repeat their hello.
                    Delivery::Again => {}
                    Delivery::Gone => return,
                },
                Some(_) = self.answering.join_next() => {}
            }
        }
        // From now on hellos go to another process.
        self.hellos.unsubscribe().await;
        while self.answering.join_next().await.is_some() {}
    }

    fn listen(&self) {
        if self.transport.health() != ConnectionHealth::Connected {
            self.host.deaf();
        }
    }

    fn hear(&self, message: &Message) {
        match read(message) {
            Some(words) => self.host.heard(words),
            None => tracing::debug!(subject = %message.subject, "what a worker said cannot be read"),
        }
    }

    fn greet(&mut self, message: &Message) {
        let hello = read(message).and_then(|message| message.hello);
        let Some(hello) = hello.filter(|_| self.answering.len() < HELLOS_MAX) else {
            tracing::debug!("a message on {HEARTBEAT} is no hello, or too many came at once");
            return;
        };
        let host = Arc::clone(&self.host);
        self.answering.spawn(async move { host.hello(hello).await });
    }
}

fn read(message: &Message) -> Option<v1::WorkerMessage> {
    v1::WorkerMessage::decode(message.payload.clone()).ok()
}

/// Sends messages to workers.
#[derive(Clone)]
pub struct BusPublisher(Arc<Transport>);

/// Why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsent {
    Away,
    TooLarge,
}

impl BusPublisher {
    pub fn new(transport: Arc<Transport>) -> Self {
        Self(transport)
    }

    /// The largest message that the server accepts.
    pub fn bytes_max(&self) -> usize {
        self.0.client().max_payload()
    }

    /// Delivery is not confirmed.
    pub async fn tell(&self, worker: &str, message: &v1::ServerMessage) -> Result<(), Unsent> {
        let bytes = message.encode_to_vec();
        if bytes.len() > self.bytes_max() {
            return Err(Unsent::TooLarge);
        }
        // A message that waits for a server would arrive late and delay its sender.
        if self.0.health() != ConnectionHealth::Connected {
            return Err(Unsent::Away);
        }
        self.0.client().publish(format!("worker.{worker}.jobs"), bytes.into()).await.map_err(|_| Unsent::Away)
    }
}

#[cfg(test)]
mod tests {
    use lockgate_model::SeededEntropy;
    use lockgate_testbed::Nats;

    use super::*;
    use crate::options::Options;

    struct Deaf;

    #[async_trait]
    impl WorkerHost for Deaf {
        async fn hello(&self, _: v1::Hello) {}

        fn heard(&self, _: v1::WorkerMessage) {}

        fn deaf(&self) {}
    }

    /// Only a new connection helps: the process has to end, and must not wait for workers that it cannot hear.
    #[tokio::test]
    async fn a_listener_whose_client_has_ended_says_so() {
        let server = Nats::start().expect("NATS starts");
        let options = Options::new(vec![server.url()], "test");
        let transport = Transport::connect(&options, Arc::new(SeededEntropy::new(1))).await.expect("connected");
        let transport = Arc::new(transport);
        let mut posts = WorkerSubjects::open(Arc::clone(&transport), "here", Arc::new(Deaf)).await.expect("opened");
        transport.client().drain().await.expect("drained");
        let ended = tokio::time::timeout(Duration::from_secs(20), posts.ended()).await.expect("it ends");
        assert_eq!(ended, "the listener for workers on NATS ended by itself");
        assert!(matches!(transport.health(), ConnectionHealth::Away(_)), "{:?}", transport.health());
    }
}
