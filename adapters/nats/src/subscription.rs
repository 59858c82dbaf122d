//! A subscription that is renewed when it ends.
//!
//! The client keeps subscriptions over reconnects. One ends nevertheless when the client gives it up: after a drain by the
//! server, or when a connection task dies. Without a new one the process would receive nothing on a connection that looks
//! healthy.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::{Client, Message, SubscribeError, Subscriber};
use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;
use tokio::time::Instant;

/// The delay before an ended subscription is renewed, so that one which ends at once does not occupy a core.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// The ended subscriptions of one connection. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lapsed(Arc<LapsedRecord>);

#[derive(Debug, Default)]
struct LapsedRecord {
    /// Subjects whose subscriptions are not in force.
    subjects: Mutex<BTreeSet<String>>,
    ended: AtomicU64,
}

impl Lapsed {
    /// Why messages do not come in although the server is reachable.
    pub(crate) fn why(&self) -> Option<String> {
        let subject = self.0.subjects.lock().first().cloned()?;
        Some(format!("the subscription to {subject} has ended and is not in force again yet"))
    }

    /// Subscriptions that ended although they were still needed.
    pub(crate) fn ended(&self) -> u64 {
        self.0.ended.load(Ordering::Relaxed)
    }
}

/// The next event of a subscription.
pub(crate) enum Delivery {
    Message(Message),
    /// The subscription had ended and is in force again: messages may have been missed.
    Again,
    /// The subscription has ended and cannot be renewed, because the client's own task has ended. Only a new connection
    /// helps.
    Gone,
}

pub(crate) struct Subscription {
    client: Client,
    subject: String,
    queue: Option<String>,
    subscriber: Subscriber,
    lapsed: Lapsed,
    /// When to subscribe again; None while the subscription is in force.
    again_at: Option<Instant>,
    is_gone: bool,
}

impl Subscription {
    pub(crate) async fn open(
        client: &Client,
        subject: String,
        queue: Option<String>,
        lapsed: Lapsed,
    ) -> Result<Self, SubscribeError> {
        let subscriber = subscribe(client, &subject, queue.as_ref()).await?;
        Ok(Self { client: client.clone(), subject, queue, subscriber, lapsed, again_at: None, is_gone: false })
    }

    /// Cancel-safe. After [`Delivery::Gone`] it never completes.
    pub(crate) async fn next(&mut self) -> Delivery {
        if self.is_gone {
            std::future::pending::<()>().await;
        }
        if self.again_at.is_none() {
            match self.subscriber.next().await {
                Some(message) => return Delivery::Message(message),
                None => self.has_ended(),
            }
        }
        if let Some(again_at) = self.again_at {
            tokio::time::sleep_until(again_at).await;
        }
        match subscribe(&self.client, &self.subject, self.queue.as_ref()).await {
            Ok(subscriber) => {
                tracing::info!(subject = self.subject, "NATS subscription restored");
                (self.subscriber, self.again_at) = (subscriber, None);
                self.lapsed.0.subjects.lock().remove(&self.subject);
                Delivery::Again
            }
            Err(error) => {
                tracing::error!(subject = self.subject, %error, "NATS subscription ended and could not be restored");
                self.is_gone = true;
                Delivery::Gone
            }
        }
    }

    fn has_ended(&mut self) {
        tracing::error!(subject = self.subject, "NATS subscription ended; restoring it");
        self.lapsed.0.ended.fetch_add(1, Ordering::Relaxed);
        self.lapsed.0.subjects.lock().insert(self.subject.clone());
        self.again_at = Some(Instant::now() + AGAIN_AFTER);
    }

    /// A message that has arrived already.
    pub(crate) fn ready(&mut self) -> Option<Message> {
        self.subscriber.next().now_or_never().flatten()
    }

    /// Stops new messages. Returns whether [`rest`](Self::rest) has those sent before.
    pub(crate) async fn drain(&mut self) -> bool {
        self.subscriber.drain().await.is_ok()
    }

    /// The next message after a drain; None at the end.
    pub(crate) async fn rest(&mut self) -> Option<Message> {
        self.subscriber.next().await
    }

    pub(crate) async fn unsubscribe(&mut self) {
        // The client and the subscription may be gone already.
        let _ = self.subscriber.unsubscribe().await;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The reader has died: nothing comes in on this subject any more.
            self.has_ended();
        } else if !self.is_gone {
            self.lapsed.0.subjects.lock().remove(&self.subject);
        }
    }
}

async fn subscribe(client: &Client, subject: &str, queue: Option<&String>) -> Result<Subscriber, SubscribeError> {
    match queue {
        Some(queue) => client.queue_subscribe(subject.to_owned(), queue.clone()).await,
        None => client.subscribe(subject.to_owned()).await,
    }
}

#[cfg(test)]
mod tests {
    use lockgate_testbed::Nats;

    use super::*;

    #[tokio::test]
    async fn a_subscription_that_ends_is_told_of_and_made_again() {
        let server = Nats::start().expect("NATS starts");
        let client = async_nats::connect(server.url()).await.expect("connected");
        let lapsed = Lapsed::default();
        let open = Subscription::open(&client, "bell".to_owned(), None, lapsed.clone());
        let mut subscription = open.await.expect("subscribed");
        subscription.subscriber.unsubscribe().await.expect("ended behind its back");
        assert!(tokio::time::timeout(AGAIN_AFTER / 5, subscription.next()).await.is_err());
        assert!(lapsed.why().is_some_and(|why| why.contains("bell")), "{:?}", lapsed.why());
        assert!(matches!(subscription.next().await, Delivery::Again));
        assert_eq!(lapsed.why(), None);
        client.publish("bell", "rung".into()).await.expect("published");
        let Delivery::Message(message) = subscription.next().await else { panic!("a message is heard") };
        assert_eq!(&*message.payload, b"rung");
        assert_eq!(lapsed.ended(), 1);
    }

    #[tokio::test]
    async fn a_subscription_of_a_client_that_has_ended_is_gone_for_good() {
        let server = Nats::start().expect("NATS starts");
        let client = async_nats::connect(server.url()).await.expect("connected");
        let lapsed = Lapsed::default();
        let open = Subscription::open(&client, "bell".to_owned(), None, lapsed.clone());
        let mut subscription = open.await.expect("subscribed");
        // Ends every subscription, and then the client's own task.
        client.drain().await.expect("drained");
        let mut heard = subscription.next().await;
        while matches!(heard, Delivery::Again) {
            heard = subscription.next().await;
        }
        assert!(matches!(heard, Delivery::Gone));
        drop(subscription);
        assert!(lapsed.why().is_some_and(|why| why.contains("bell")), "{:?}", lapsed.why());
    }
}
