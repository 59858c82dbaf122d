//! Requests for messages of a stream, all on one subscription, so that messages in flight between two requests are not lost.

use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::consumer::pull::BatchConfig;
use async_nats::{StatusCode, Subject, Subscriber};
use futures::{FutureExt, StreamExt};
use tokio::time::{Instant, timeout_at};

use super::BATCH;
use crate::transport::Transport;

/// How long one request is open. A stop waits for its end.
const ASK_FOR: Duration = Duration::from_secs(1);
/// Bounds the memory of a batch of large messages.
const ASK_BYTES: usize = 32 * 1024 * 1024;
/// How late the server may report the end of a request. A request that it forgot is made again then.
const LATE: Duration = Duration::from_secs(2);
/// For messages in flight when a request ends.
const MARGIN: Duration = Duration::from_millis(200);

/// The server's message when a request ends because the next message would exceed `ASK_BYTES`.
const FULL: &str = "MaxBytes";

pub(super) struct Pull {
    inbox: Subject,
    messages: Subscriber,
    /// Messages requested and not received yet; 0 without a request.
    wanted: usize,
    until: Instant,
    /// When the server drops the latest request.
    expires: Instant,
    /// The server's own message.
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
        // With a smaller bound, a message larger than it would never come.
        let max_bytes = ASK_BYTES.max(2 * transport.client().max_payload());
        let request = BatchConfig { batch: BATCH, expires: Some(ASK_FOR), max_bytes, ..BatchConfig::default() };
        consumer.request_batch(request, self.inbox.clone()).await?;
        self.expires = Instant::now() + ASK_FOR;
        (self.wanted, self.until) = (BATCH, self.expires + LATE);
        Ok(())
    }

    /// The server does not know the request any more.
    pub(super) fn forget(&mut self) {
        self.wanted = 0;
    }

    /// Waits for a message or for the end of the request. Fails if the server does not serve it. Safe to use in `select!`.
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

    /// Why the server refused the request; returned once.
    pub(super) fn refused(&mut self) -> Option<String> {
        self.refusal.take()
    }

    /// Messages that have arrived already.
    pub(super) fn ready(&mut self, transport: &Transport) -> Vec<Message> {
        let mut ready = Vec::new();
        while let Some(Some(message)) = self.messages.next().now_or_never() {
            ready.extend(self.sort(transport, message));
        }
        ready
    }

    /// Waits until no request is open, and returns what came before that. Unsubscribing earlier loses messages in flight,
    /// and no other process gets them until JetStream redelivers them.
    pub(super) async fn close(mut self, transport: &Transport) -> Vec<Message> {
        let mut rest = Vec::new();
        // The server's report of the end is not trusted, because it may be about an earlier request.
        while let Ok(Some(message)) = timeout_at(self.expires + MARGIN, self.messages.next()).await {
            rest.extend(self.sort(transport, message));
        }
        rest.extend(self.ready(transport));
        rest
    }

    /// Separates messages from status reports about the request.
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
