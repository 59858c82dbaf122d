//! The subjects on which messages come in: `sys.job.submit` and `sys.job.result`.
//!
//! A message with a reply subject is a question: one process answers it, after the commit. JetStream stores every message
//! too and delivers it from there, so a question that no process could answer is not lost, and a message without a reply
//! subject needs no waiting sender. Most questions therefore arrive twice; the guard saves processing them twice.
//!
//! For senders: the body is protobuf, as over gRPC. The headers `x-lockgate-tenant`, `x-lockgate-actor` and
//! `x-lockgate-actor-type` name the sender. A repeated message must be recognisable: by `Nats-Msg-Id`, or by ids or keys of
//! all its jobs; a message with neither is refused. An answer with the header `Nats-Service-Error-Code` is 400 (never) or
//! 503 (not yet), and `Nats-Service-Error` says why. A refused message that was no question goes to `sys.job.dlq` as it
//! came, with `x-lockgate-subject` and `x-lockgate-reason`. Installations that share servers need an account each, because
//! these subjects are equal for all.

pub(crate) mod api;
mod dead;
pub(crate) mod guard;
mod guarded;
mod inbound_message;
mod intake;
mod pull;
mod request_reply;
pub(crate) mod streams;
mod subject;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::error::ConnectError;
use crate::subscription::Lapsed;
use crate::transport::Transport;
use crate::worker_subjects::ended;
use api::Ingress;
use guard::{DuplicateGuard, PROCESSED_FOR};
use guarded::Guarded;
use intake::Intake;
use request_reply::RequestReplyServer;
use subject::{IngressSubject, ResultSubject, SubmitSubject};

/// Messages that are processed together.
const BATCH: usize = 256;

/// Which subjects are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    pub submits: bool,
    /// Serve the shared result subject and the one with this process's address.
    pub results: Option<String>,
}

/// How JetStream treats unacknowledged messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryTerms {
    /// The time until a message is redelivered to another process. A held message is reported as in progress long before.
    pub ack_wait: Duration,
    /// The most deliveries of one message. A message that was never acknowledged may be what kills processes: when few
    /// deliveries are left, it becomes a dead letter.
    pub max_deliver: i64,
    /// How many servers store each message.
    pub replicas: usize,
}

impl Default for DeliveryTerms {
    fn default() -> Self {
        Self { ack_wait: ACK_WAIT, max_deliver: 100, replicas: 1 }
    }
}

const ACK_WAIT: Duration = Duration::from_mins(10);
// Otherwise a message whose acknowledgement was lost could be redelivered after the guard forgot it.
const _: () = assert!(ACK_WAIT.as_secs() <= PROCESSED_FOR.as_secs());

/// Counts of messages since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IngressCounters {
    /// Questions that got an answer, including refusals.
    pub answered: u64,
    /// Messages taken from JetStream and committed.
    pub committed: u64,
    /// Messages from JetStream that were processed already.
    pub doubled: u64,
    /// Messages that became dead letters.
    pub dead: u64,
    /// Messages held now because a service is unreachable or full.
    pub held: u64,
    /// Subscriptions of the connection that ended and were made again.
    pub lapsed: u64,
}

/// Served until stopped or dropped.
pub struct IngressSubjects {
    counts: Arc<IngressCounts>,
    stop: watch::Sender<bool>,
    open: JoinSet<()>,
}

impl IngressSubjects {
    pub async fn open(
        transport: Arc<Transport>,
        terms: DeliveryTerms,
        served: Served,
        ingress: Arc<dyn Ingress>,
        guard: Arc<dyn DuplicateGuard>,
    ) -> Result<Self, ConnectError> {
        let counts = Arc::new(IngressCounts { lapsed: transport.lapsed(), ..IngressCounts::default() });
        let shared = Arc::new(IngressShared { transport, terms, ingress, guard: Guarded(guard), counts });
        let (stop, _) = watch::channel(false);
        let mut subjects = Self { counts: Arc::clone(&shared.counts), stop, open: JoinSet::new() };
        if served.submits {
            subjects.add::<SubmitSubject>(&shared).await?;
        }
        if let Some(address) = &served.results {
            subjects.add::<ResultSubject>(&shared).await?;
            let server = RequestReplyServer::<ResultSubject>::at(Arc::clone(&shared), address).await?;
            subjects.open.spawn(server.run(subjects.stop.subscribe()));
        }
        shared.transport.settled().await;
        Ok(subjects)
    }

    async fn add<D: IngressSubject>(&mut self, shared: &Arc<IngressShared>) -> Result<(), ConnectError> {
        let server = RequestReplyServer::<D>::open(Arc::clone(shared)).await?;
        self.open.spawn(server.run(self.stop.subscribe()));
        self.open.spawn(Intake::<D>::new(Arc::clone(shared)).run(self.stop.subscribe()));
        Ok(())
    }

    pub fn counters(&self) -> IngressCounters {
        self.counts.read()
    }

    /// Reads the counters, also after the subjects were stopped.
    pub fn meter(&self) -> impl Fn() -> IngressCounters + Send + Sync + 'static {
        let counts = Arc::clone(&self.counts);
        move || counts.read()
    }

    /// Waits until a task ends although it was not stopped. Nothing comes in on its subject until this process restarts.
    pub async fn ended(&mut self) -> String {
        ended(&mut self.open, "a door for messages of NATS").await
    }

    /// Finishes the messages being processed and returns the rest, so that other processes get them at once.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        while self.open.join_next().await.is_some() {}
    }
}

/// What all subjects share.
struct IngressShared {
    transport: Arc<Transport>,
    terms: DeliveryTerms,
    ingress: Arc<dyn Ingress>,
    guard: Guarded,
    counts: Arc<IngressCounts>,
}

#[derive(Default)]
struct IngressCounts {
    answered: AtomicU64,
    committed: AtomicU64,
    doubled: AtomicU64,
    dead: AtomicU64,
    held: AtomicU64,
    lapsed: Lapsed,
}

impl IngressCounts {
    fn read(&self) -> IngressCounters {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Self { answered, committed, doubled, dead, held, lapsed } = self;
        IngressCounters {
            answered: read(answered),
            committed: read(committed),
            doubled: read(doubled),
            dead: read(dead),
            held: read(held),
            lapsed: lapsed.ended(),
        }
    }

    fn hold(&self, before: usize, after: usize) {
        let [before, after] = [before, after].map(|n| u64::try_from(n).unwrap_or(u64::MAX));
        self.held.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
    }
}

fn add(count: &AtomicU64, n: usize) {
    count.fetch_add(u64::try_from(n).unwrap_or(u64::MAX), Ordering::Relaxed);
}
