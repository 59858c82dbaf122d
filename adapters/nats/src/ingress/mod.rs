//! Where messages come in: `sys.job.submit` and `sys.job.result`.
//!
//! A message with a reply subject is a question: one of the processes answers it, after the commit. Every message is also
//! stored by JetStream and taken from there, so one that no process could answer is not lost, and one that was sent without a
//! question needs no sender that waits. Most questions therefore come twice; the guard saves the second look.
//!
//! For senders: the body is protobuf, as over gRPC. The headers `x-lockgate-tenant`, `x-lockgate-actor` and
//! `x-lockgate-actor-type` say who sends. A message sent again must be the same one: `Nats-Msg-Id`, or ids or keys of all its
//! jobs, make it so, and one that has neither is refused. An answer with the header `Nats-Service-Error-Code` is 400 (never)
//! or 503 (not yet), and `Nats-Service-Error` says why. What is refused and was no question goes to `sys.job.dlq` as it
//! came, with `x-lockgate-subject` and `x-lockgate-reason`. Installations on the same servers need an account each: these
//! subjects are the same for all.

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

/// Messages that are taken together.
const BATCH: usize = 256;

/// Which doors are open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    pub submits: bool,
    /// Serve the shared result subject and this process's own.
    pub results: Option<String>,
}

/// How JetStream deals with messages that are not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryTerms {
    /// Until a message is redelivered to another process. One in hand is reported to be in progress long before.
    pub ack_wait: Duration,
    /// Deliveries of one message. One that was never acknowledged may be what ends our processes: when few are left, it
    /// becomes a dead letter.
    pub max_deliver: i64,
    /// Servers that store each message.
    pub replicas: usize,
}

impl Default for DeliveryTerms {
    fn default() -> Self {
        Self { ack_wait: ACK_WAIT, max_deliver: 100, replicas: 1 }
    }
}

const ACK_WAIT: Duration = Duration::from_mins(10);
// Else a message whose acknowledgement was lost comes again after the guard forgot it.
const _: () = assert!(ACK_WAIT.as_secs() <= PROCESSED_FOR.as_secs());

/// Messages, since the doors were opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IngressCounters {
    /// Questions that got an answer, be it a refusal.
    pub answered: u64,
    /// Taken from JetStream and committed.
    pub committed: u64,
    /// Found in JetStream, and known to be done.
    pub doubled: u64,
    /// Became dead letters.
    pub dead: u64,
    /// In hand now because something is away or full.
    pub held: u64,
    /// Subscriptions of the connection that ended and were made again.
    pub lapsed: u64,
}

/// Open until stopped or dropped.
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

    /// Reads the counters, also when the doors are no longer at hand.
    pub fn meter(&self) -> impl Fn() -> IngressCounters + Send + Sync + 'static {
        let counts = Arc::clone(&self.counts);
        move || counts.read()
    }

    /// Waits until a door ends although it was not stopped. Until this process starts again, nothing comes in there.
    pub async fn ended(&mut self) -> String {
        ended(&mut self.open, "a door for messages of NATS").await
    }

    /// Finishes what is being taken and gives the rest back, for others to have at once.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        while self.open.join_next().await.is_some() {}
    }
}

/// What all doors share.
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
