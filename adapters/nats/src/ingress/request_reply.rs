//! Answers senders that wait. Each question goes to one process.

use std::marker::PhantomData;
use std::sync::Arc;

use async_nats::{HeaderMap, Message, Subject};
use bytes::Bytes;
use prost::Message as _;
use tokio::sync::watch;
use tokio::time::timeout;

use super::api::IngressAnswer;
use super::dead::one_line;
use super::guard::MessageStanding;
use super::inbound_message::InboundMessage;
use super::subject::IngressSubject;
use super::{BATCH, IngressShared, add};
use crate::error::ConnectError;
use crate::link::ANSWER_WITHIN;
use crate::subscription::{Delivery, Subscription};

/// The headers in which NATS services report errors.
const ERROR: &str = "Nats-Service-Error";
const ERROR_CODE: &str = "Nats-Service-Error-Code";

pub(super) struct RequestReplyServer<D> {
    shared: Arc<IngressShared>,
    questions: Subscription,
    subject: PhantomData<fn() -> D>,
}

struct Request {
    reply: Subject,
    inbound: InboundMessage,
}

impl<D: IngressSubject> RequestReplyServer<D> {
    pub(super) async fn open(shared: Arc<IngressShared>) -> Result<Self, ConnectError> {
        let questions = shared.transport.subscribe_in_turn(D::SUBJECT).await?;
        Ok(Self { shared, questions, subject: PhantomData })
    }

    /// For questions addressed to this process.
    pub(super) async fn at(shared: Arc<IngressShared>, address: &str) -> Result<Self, ConnectError> {
        let questions = shared.transport.subscribe(format!("{}.{address}", D::SUBJECT)).await?;
        Ok(Self { shared, questions, subject: PhantomData })
    }

    pub(super) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        loop {
            let next = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                next = self.questions.next() => next,
            };
            let first = match next {
                Delivery::Message(first) => first,
                // A missed question is asked again by its sender, and stored messages come from the stream.
                Delivery::Again => continue,
                Delivery::Gone => return,
            };
            let batch = std::iter::once(first).chain(self.ready()).collect();
            self.take(batch).await;
        }
        // Questions delivered before the unsubscribe are still answered. One that crosses the unsubscribe on the wire is not
        // received here: the stream has it, and a repeated question is answered.
        if self.questions.drain().await {
            while let Ok(Some(first)) = timeout(ANSWER_WITHIN, self.questions.rest()).await {
                let batch = std::iter::once(first).chain(self.ready()).collect();
                self.take(batch).await;
            }
        }
    }

    /// Questions that arrived while the previous batch was committed.
    fn ready(&mut self) -> impl Iterator<Item = Message> + '_ {
        std::iter::from_fn(|| self.questions.ready()).take(BATCH - 1)
    }

    async fn take(&self, messages: Vec<Message>) {
        let question = |message: Message| {
            let inbound = InboundMessage::new(D::SUBJECT, &message);
            message.reply.map(|reply| Request { reply, inbound })
        };
        // Messages without a reply subject are served from the stream.
        let questions: Vec<Request> = messages.into_iter().filter_map(question).collect();
        let ids: Vec<String> = questions.iter().map(|question| question.inbound.id.clone()).collect();
        // Another process may have processed it or be doing so: the sender waits nevertheless, and the Store knows the
        // answer.
        let standings = self.shared.guard.begin(&ids).await;
        let answers = self.enter(&questions).await;
        self.settle(&ids, &standings, &answers).await;
        for (question, answer) in questions.iter().zip(answers) {
            self.tell(question, answer).await;
        }
    }

    /// One answer per question.
    async fn enter(&self, questions: &[Request]) -> Vec<IngressAnswer<D::Reply>> {
        let mut orders = Vec::new();
        let read = |question: &Request| match D::read(&question.inbound) {
            Ok(order) => {
                orders.push(order);
                None
            }
            Err(why) => Some(IngressAnswer::Refused(why)),
        };
        let refused: Vec<Option<IngressAnswer<D::Reply>>> = questions.iter().map(read).collect();
        let entered = if orders.is_empty() { Vec::new() } else { D::enter(&*self.shared.ingress, orders).await };
        let mut entered = entered.into_iter();
        let unanswered = || IngressAnswer::Later("it was not looked at".to_owned());
        refused.into_iter().map(|refused| refused.or_else(|| entered.next()).unwrap_or_else(unanswered)).collect()
    }

    /// A postponed message is left to the stream, which has it too and retries as long as needed. A refused one becomes no
    /// dead letter, because its sender gets the answer.
    async fn settle(&self, ids: &[String], standings: &[MessageStanding], answers: &[IngressAnswer<D::Reply>]) {
        let (mut finished, mut released) = (Vec::new(), Vec::new());
        for ((id, standing), answer) in ids.iter().zip(standings).zip(answers) {
            match (answer, standing) {
                (IngressAnswer::Done(_) | IngressAnswer::Refused(_), _) => finished.push(id.clone()),
                (IngressAnswer::Later(_), MessageStanding::Mine) => released.push(id.clone()),
                (IngressAnswer::Later(_), _) => {}
            }
        }
        self.shared.guard.finish(&finished).await;
        self.shared.guard.release(&released).await;
    }

    async fn tell(&self, question: &Request, answer: IngressAnswer<D::Reply>) {
        let client = self.shared.transport.client();
        let reply = question.reply.clone();
        let sent = match answer {
            IngressAnswer::Done(answer) => client.publish(reply, answer.encode_to_vec().into()).await,
            IngressAnswer::Refused(why) => client.publish_with_headers(reply, error("400", &why), Bytes::new()).await,
            IngressAnswer::Later(why) => {
                let why = format!("not committed yet, ask again with the same message: {why}");
                client.publish_with_headers(reply, error("503", &why), Bytes::new()).await
            }
        };
        add(&self.shared.counts.answered, usize::from(sent.is_ok()));
    }
}

fn error(code: &str, why: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(ERROR_CODE, code);
    headers.insert(ERROR, one_line(why).as_str());
    headers
}
