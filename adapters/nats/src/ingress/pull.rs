//! Requests for messages of a stream, all on one subscription, so that nothing which is on its way gets lost between them.

use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::consumer::pull::BatchConfig;
use async_nats::{StatusCode, Subject, Subscriber};
use futures::{FutureExt, StreamExt};
use tokio::time::{Instant, timeout_at};

use super::BATCH;
use crate::transport::Transport;

/// How long one request stands. A stop waits for its end.
const ASK_FOR: Duration = Duration::from_secs(1);
/// Bounds what a batch of large messages costs us.
const ASK_BYTES: usize = 32 * 1024 * 1024;
/// How much later the server may say that a request is over. One that it forgot is made again then.
const LATE: Duration = Duration::from_secs(2);
/// For what is on its way when a request is over.
const MARGIN: Duration = Duration::from_millis(200);

/// In the server's words when a request is over because the next message would exceed `ASK_BYTES`.
const FULL: &str = "MaxBytes";

pub(super) struct Pull {
    inbox: Subject,
    messages: Subscriber,
    /// Messages asked for and not yet here; 0 is no request at all.
    wanted: usize,
    until: Instant,
    /// When the server gives up the latest request.
    expires: Instant,
    /// The server's own words.
    refusal: Option<String>,
}

impl Pull {
    pub(super) async fn open(transport: &Transport) -> Result<Self, async_nats::Error> {
        let inbox = Subject::from(transport.client().new_inbox());
        let messages = transport.client().subscribe(inbox.clone()).await?;
        let now = Instant::now();
        Ok(Self { inbox, messages, wanted: 0, until: now, expires: now, refusal: None })
    }

    pub(super) fn is_asking(&self) -> bool {
        self.wanted > 0 && Instant::now() < self.until
    }

    pub(super) async fn ask(&mut self, transport: &Transport, consumer: &PullConsumer) -> Result<(), async_nats::Error> {
        // A message larger than the bound would never come.
        let max_bytes = ASK_BYTES.max(2 * transport.client().max_payload());
        let request = BatchConfig { batch: BATCH, expires: Some(ASK_FOR), max_bytes, ..BatchConfig::default() };
        consumer.request_batch(request, self.inbox.clone()).await?;
        self.expires = Instant::now() + ASK_FOR;
        (self.wanted, self.until) = (BATCH, self.expires + LATE);
        Ok(())
    }

    /// The server knows nothing of our request.
    pub(super) fn forget(&mut self) {
        self.wanted = 0;
    }

    /// Waits for a message, or for the end of the request. Fails if the server does not serve it. Safe to use in `select!`.
    pub(super) async fn next(&mut self, transport: &Transport) -> Result<Option<Message>, async_nats::Error> {
        while self.is_asking() {
            let Ok(next) = timeout_at(self.until, self.messages.next()).await else { break };
            let message = next.ok_or("the subscription is gone")?;
            if let Some(message) = self.sort(transport, message) {
                return Ok(Some(message));
            }
        }
        self.wanted = 0;
        self.refusal.take().map_or(Ok(None), |refusal| Err(refusal.into()))
    }

    /// Why the server does not serve what was asked for, told once.
    pub(super) fn refused(&mut self) -> Option<String> {
        self.refusal.take()
    }

    /// What is here already.
    pub(super) fn ready(&mut self, transport: &Transport) -> Vec<Message> {
        let mut ready = Vec::new();
        while let Some(Some(message)) = self.messages.next().now_or_never() {
            ready.extend(self.sort(transport, message));
        }
        ready
    }

    /// Waits until no request stands any more, and returns what came before that. Unsubscribing sooner loses what is on
    /// its way, and no other process gets that until JetStream redelivers it.
    pub(super) async fn close(mut self, transport: &Transport) -> Vec<Message> {
        let mut rest = Vec::new();
        // The server is not believed that it is over: it may speak of an earlier request.
        while let Ok(Some(message)) = timeout_at(self.expires + MARGIN, self.messages.next()).await {
            rest.extend(self.sort(transport, message));
        }
        rest.extend(self.ready(transport));
        rest
    }

    /// Tells messages from words about the request.
    fn sort(&mut self, transport: &Transport, message: async_nats::Message) -> Option<Message> {
        match message.status {
            None | Some(StatusCode::OK) => {
                self.wanted = self.wanted.saturating_sub(1);
                return Some(Message { message, context: transport.jetstream().clone() });
            }
            Some(StatusCode::IDLE_HEARTBEAT) => {}
            Some(StatusCode::NOT_FOUND | StatusCode::TIMEOUT) => self.wanted = 0,
            Some(status) => {
                self.wanted = 0;
                let words = message.description.unwrap_or_default();
                let is_full = status == StatusCode::REQUEST_TERMINATED && words.contains(FULL);
                self.refusal = (!is_full).then(|| format!("{status} {words}"));
            }
        }
        None
    }
}
