//! Where messages come in: `sys.job.submit` and `sys.job.result`.
//!
//! A message with a reply subject is a question: one of the processes answers it, after the commit. Every message is also
//! stored by JetStream and taken from there, so one that nobody could answer is not lost, and one that was sent without a
//! question needs no sender that waits. Most questions therefore come twice; the guard saves the second look.
//!
//! For senders: the body is protobuf, as over gRPC. The headers `x-lockgate-tenant`, `x-lockgate-actor` and
//! `x-lockgate-actor-type` say who sends. A message sent again must be the same one: `Nats-Msg-Id`, or ids or keys of all its
//! jobs, make it so, and one that has neither is refused. An answer with the header `Nats-Service-Error-Code` is 400 (never)
//! or 503 (not yet), and `Nats-Service-Error` says why. What is refused and was no question goes to `sys.job.dlq` as it
//! came, with `x-lockgate-subject` and `x-lockgate-reason`. Installations on the same servers need an account each: these
//! subjects are the same for all.

mod dead;
mod desk;
mod door;
pub(crate) mod guard;
mod guarded;
pub(crate) mod ingress;
mod intake;
mod letter;
mod pull;
pub(crate) mod streams;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::error::ConnectError;
use crate::posts::ended;
use crate::subscription::Lapsed;
use crate::transport::Transport;
use desk::Desk;
use door::{Door, Results, Submits};
use guard::{Guard, PROCESSED_FOR};
use guarded::Guarded;
use ingress::Ingress;
use intake::Intake;

/// Messages that are taken together.
const BATCH: usize = 256;

/// Which doors are open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    pub submits: bool,
    /// For whoever asks anybody, and for those who ask this process by this address.
    pub results: Option<String>,
}

/// How JetStream deals with messages that nobody acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Until a message is given to somebody else. One in hand is reported to be in progress long before.
    pub ack_wait: Duration,
    /// Deliveries of one message. One that was never acknowledged may be what ends our processes: when few are left, it
    /// becomes a dead letter.
    pub max_deliver: i64,
    /// Servers that store each message.
    pub replicas: usize,
}

impl Default for Terms {
    fn default() -> Self {
        Self { ack_wait: ACK_WAIT, max_deliver: 100, replicas: 1 }
    }
}

const ACK_WAIT: Duration = Duration::from_mins(10);
// Else a message whose acknowledgement was lost comes again when nobody knows it any more.
const _: () = assert!(ACK_WAIT.as_secs() <= PROCESSED_FOR.as_secs());

/// Messages, since the doors were opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DoorCounters {
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
pub struct Doors {
    counts: Arc<Counts>,
    stop: watch::Sender<bool>,
    open: JoinSet<()>,
}

impl Doors {
    pub async fn open(
        transport: Arc<Transport>,
        terms: Terms,
        served: Served,
        ingress: Arc<dyn Ingress>,
        guard: Arc<dyn Guard>,
    ) -> Result<Self, ConnectError> {
        let counts = Arc::new(Counts { lapsed: transport.lapsed(), ..Counts::default() });
        let hall = Arc::new(Hall { transport, terms, ingress, guard: Guarded(guard), counts });
        let (stop, _) = watch::channel(false);
        let mut doors = Self { counts: Arc::clone(&hall.counts), stop, open: JoinSet::new() };
        if served.submits {
            doors.add::<Submits>(&hall).await?;
        }
        if let Some(address) = &served.results {
            doors.add::<Results>(&hall).await?;
            let desk = Desk::<Results>::at(Arc::clone(&hall), address).await?;
            doors.open.spawn(desk.run(doors.stop.subscribe()));
        }
        hall.transport.settled().await;
        Ok(doors)
    }

    async fn add<D: Door>(&mut self, hall: &Arc<Hall>) -> Result<(), ConnectError> {
        let desk = Desk::<D>::open(Arc::clone(hall)).await?;
        self.open.spawn(desk.run(self.stop.subscribe()));
        self.open.spawn(Intake::<D>::new(Arc::clone(hall)).run(self.stop.subscribe()));
        Ok(())
    }

    pub fn counters(&self) -> DoorCounters {
        self.counts.read()
    }

    /// Reads the counters, also when the doors are no longer at hand.
    pub fn meter(&self) -> impl Fn() -> DoorCounters + Send + Sync + 'static {
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
struct Hall {
    transport: Arc<Transport>,
    terms: Terms,
    ingress: Arc<dyn Ingress>,
    guard: Guarded,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    answered: AtomicU64,
    committed: AtomicU64,
    doubled: AtomicU64,
    dead: AtomicU64,
    held: AtomicU64,
    lapsed: Lapsed,
}

impl Counts {
    fn read(&self) -> DoorCounters {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Self { answered, committed, doubled, dead, held, lapsed } = self;
        DoorCounters {
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
