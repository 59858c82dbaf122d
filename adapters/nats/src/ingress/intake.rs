//! Takes messages from a stream. A message is acknowledged once committed, terminated once its dead letter is stored, and
//! held while a service is unreachable, so that an outage uses up no deliveries.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::{AckKind, Message};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::api::IngressAnswer;
use super::guard::{IN_FLIGHT_FOR, MessageStanding};
use super::inbound_message::InboundMessage;
use super::pull::Pull;
use super::subject::IngressSubject;
use super::{BATCH, IngressShared, add, dead, streams};
use crate::pace::spread;

/// The pause between checks of held messages, and between failing requests.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// How many messages may be held while further ones are requested.
const WAITING_FEW: usize = BATCH / 4;
/// How long a message that another process has is held: most are questions, answered at once.
const OTHERS_HAVE: Duration = Duration::from_secs(2);
/// The delay after which a message that another process did not finish is delivered again.
const COME_BACK: Duration = Duration::from_secs(30);
// A process that died with a message costs a few deliveries and not all of them.
const _: () = assert!(IN_FLIGHT_FOR.as_secs() / COME_BACK.as_secs() <= 5);
/// Deliveries reserved for storing the dead letter: after the last one JetStream drops a message even if it was never
/// acknowledged.
const FOR_BURIAL: i64 = 5;
/// The delay after which a message whose dead letter could not be stored is delivered again.
const BURY_AGAIN: Duration = Duration::from_secs(5);

pub(super) struct Intake<D> {
    shared: Arc<IngressShared>,
    connects: watch::Receiver<u64>,
    consumer: Option<PullConsumer>,
    pull: Option<Pull>,
    held: Vec<HeldMessage>,
    progress_told: Instant,
    subject: PhantomData<fn() -> D>,
}

/// A message in hand.
struct HeldMessage {
    message: Message,
    inbound: InboundMessage,
    since: Instant,
    /// Whether the guard gave the message to this process.
    is_ours: bool,
}

impl HeldMessage {
    fn new<D: IngressSubject>(message: Message) -> Self {
        let inbound = InboundMessage::new(D::SUBJECT, &message.message);
        Self { message, inbound, since: Instant::now(), is_ours: false }
    }

    /// A lost acknowledgement costs a delivery, which the guard and the Store recognise.
    async fn tell(&self, kind: AckKind) {
        if let Err(error) = self.message.ack_with(kind).await {
            tracing::debug!(%error, id = self.inbound.id, "JetStream was not told");
        }
    }

    fn deliveries(&self) -> i64 {
        self.message.info().map_or(1, |info| info.delivered)
    }
}

impl<D: IngressSubject> Intake<D> {
    pub(super) fn new(shared: Arc<IngressShared>) -> Self {
        let connects = shared.transport.connects();
        let progress_told = Instant::now();
        Self { shared, connects, consumer: None, pull: None, held: Vec::new(), progress_told, subject: PhantomData }
    }

    pub(super) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        loop {
            let fresh = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                fresh = self.fresh() => fresh,
            };
            let before = self.held.len();
            self.held.extend(fresh.into_iter().map(HeldMessage::new::<D>));
            self.take().await;
            self.shared.counts.hold(before, self.held.len());
        }
        self.finish().await;
    }

    /// Waits for messages; only briefly while some are held.
    async fn fresh(&mut self) -> Vec<Message> {
        let shared = Arc::clone(&self.shared);
        if !self.held.is_empty() {
            self.pause().await;
            self.ask_beside().await;
            return self.pull.as_mut().map(|pull| pull.ready(&shared.transport)).unwrap_or_default();
        }
        loop {
            if let Err(error) = self.ask().await {
                self.start_over(&error).await;
            }
            let Some(pull) = &mut self.pull else { continue };
            tokio::select! {
                biased;
                // After a reconnect the server may have lost its streams and this process's request.
                Ok(()) = self.connects.changed() => {
                    pull.forget();
                    self.consumer = None;
                }
                next = pull.next(&shared.transport) => match next {
                    Ok(Some(first)) => return std::iter::once(first).chain(pull.ready(&shared.transport)).collect(),
                    Ok(None) => {}
                    Err(error) => self.start_over(&error).await,
                },
            }
        }
    }

    /// A few held messages do not stop further requests. Many mean that none can be processed, so no more are requested.
    async fn ask_beside(&mut self) {
        if self.held.len() > WAITING_FEW {
            return;
        }
        if let Some(refusal) = self.pull.as_mut().and_then(Pull::refused) {
            self.start_over(&refusal.into()).await;
        }
        if self.connects.has_changed().unwrap_or(false) {
            self.pull.iter_mut().for_each(Pull::forget);
            self.consumer = None;
        }
        if let Err(error) = self.ask().await {
            self.start_over(&error).await;
        }
    }

    /// Makes sure that a request is open.
    async fn ask(&mut self) -> Result<(), async_nats::Error> {
        if self.consumer.is_none() {
            self.connects.mark_unchanged();
            self.consumer = Some(self.ensure().await?);
        }
        if self.pull.is_none() {
            self.pull = Some(Pull::open(&self.shared.transport).await?);
        }
        match (&self.consumer, &mut self.pull) {
            (Some(consumer), Some(pull)) if !pull.is_asking() => pull.ask(&self.shared.transport, consumer).await,
            _ => Ok(()),
        }
    }

    async fn ensure(&self) -> Result<PullConsumer, async_nats::Error> {
        streams::ensure::<D>(self.shared.transport.jetstream(), &self.shared.terms).await
    }

    /// The stream may have been deleted: it is created again.
    async fn start_over(&mut self, error: &async_nats::Error) {
        tracing::warn!(%error, stream = D::STREAM, "JetStream pull failed; trying again");
        self.consumer = None;
        self.pause().await;
    }

    async fn pause(&self) {
        sleep(spread(LOOK_AGAIN, self.shared.transport.entropy())).await;
    }

    async fn take(&mut self) {
        let ours = self.claim().await;
        let (mut letters, mut orders) = (Vec::new(), Vec::new());
        for held in ours {
            match self.read(&held) {
                Ok(order) => {
                    letters.push(held);
                    orders.push(order);
                }
                Err(why) => self.bury(held, &why).await,
            }
        }
        if !orders.is_empty() {
            self.enter(letters, orders).await;
        }
        self.tell_progress().await;
    }

    fn read(&self, held: &HeldMessage) -> Result<D::Order, String> {
        let deliveries = held.deliveries();
        if deliveries > self.shared.terms.max_deliver - FOR_BURIAL {
            return Err(format!("delivered {deliveries} times and never finished"));
        }
        D::read(&held.inbound)
    }

    /// Held messages that no other process has.
    async fn claim(&mut self) -> Vec<HeldMessage> {
        let (mut ours, asked): (Vec<HeldMessage>, Vec<HeldMessage>) = self.held.drain(..).partition(|held| held.is_ours);
        let ids: Vec<String> = asked.iter().map(|held| held.inbound.id.clone()).collect();
        let standings = self.shared.guard.begin(&ids).await;
        for (mut held, standing) in asked.into_iter().zip(standings) {
            match standing {
                MessageStanding::Mine => {
                    held.is_ours = true;
                    ours.push(held);
                }
                MessageStanding::Processed => {
                    held.tell(AckKind::Ack).await;
                    add(&self.shared.counts.doubled, 1);
                }
                MessageStanding::InFlight if held.since.elapsed() < OTHERS_HAVE => self.held.push(held),
                MessageStanding::InFlight => held.tell(AckKind::Nak(Some(COME_BACK))).await,
            }
        }
        ours
    }

    async fn enter(&mut self, letters: Vec<HeldMessage>, orders: Vec<D::Order>) {
        let mut answers = D::enter(&*self.shared.ingress, orders).await.into_iter();
        let mut done = Vec::new();
        for held in letters {
            match answers.next().unwrap_or_else(|| IngressAnswer::Later("it was not looked at".to_owned())) {
                IngressAnswer::Done(reply) => match D::refusals(&reply) {
                    None => done.push(held),
                    Some(why) => self.bury(held, &why).await,
                },
                IngressAnswer::Refused(why) => self.bury(held, &why).await,
                IngressAnswer::Later(why) => {
                    tracing::debug!(why, id = held.inbound.id, "a message waits");
                    self.held.push(held);
                }
            }
        }
        let ids: Vec<String> = done.iter().map(|held| held.inbound.id.clone()).collect();
        self.shared.guard.finish(&ids).await;
        for held in &done {
            held.tell(AckKind::Ack).await;
        }
        add(&self.shared.counts.committed, done.len());
    }

    /// Stores the dead letter first, because a terminated message is gone.
    async fn bury(&mut self, held: HeldMessage, why: &str) {
        let id = std::slice::from_ref(&held.inbound.id);
        match dead::keep(&self.shared.transport, D::SUBJECT, &held.inbound, why).await {
            Ok(()) => {
                self.shared.guard.finish(id).await;
                held.tell(AckKind::Term).await;
                add(&self.shared.counts.dead, 1);
            }
            Err(error) => {
                tracing::warn!(%error, why, "message could neither be processed nor moved to the dead letters");
                self.shared.guard.release(id).await;
                held.tell(AckKind::Nak(Some(BURY_AGAIN))).await;
                // The stream of dead letters may have been deleted, while messages keep coming.
                self.consumer = self.ensure().await.ok();
            }
        }
    }

    async fn tell_progress(&mut self) {
        if self.progress_told.elapsed() < self.shared.terms.ack_wait / 4 {
            return;
        }
        self.progress_told = Instant::now();
        for held in &self.held {
            held.tell(AckKind::Progress).await;
        }
    }

    /// Takes the messages in flight, and returns those that cannot be processed.
    async fn finish(mut self) {
        if let Some(pull) = self.pull.take() {
            self.held.extend(pull.close(&self.shared.transport).await.into_iter().map(HeldMessage::new::<D>));
            self.take().await;
        }
        let ours = self.held.iter().filter(|held| held.is_ours).map(|held| held.inbound.id.clone());
        self.shared.guard.release(&ours.collect::<Vec<_>>()).await;
        for held in &self.held {
            held.tell(AckKind::Nak(None)).await;
        }
        // The process ends after a stop, and would lose unsent acknowledgements.
        self.shared.transport.settled().await;
    }
}
