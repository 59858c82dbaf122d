//! Doorbells over one plain subject of the installation, and sightings of workers over another. Nothing is stored: a process
//! that missed rings reads the Store.

mod listeners;
mod posts;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_nats::connection::State;
use async_trait::async_trait;
use futures::FutureExt;
use lockgate_ports::{Bell, Bus, Ear, Entropy, Overheard, Sighting, Sightings};
use tokio::task::JoinSet;

use crate::error::ConnectError;
use crate::link::{ConnectionHealth, Purpose, ServerLink};
use crate::options::Options;
use crate::subscription::{Delivery, Subscription};
use listeners::DoorbellListeners;
use wire::DoorbellBatch;

/// Messages that wait for a slow server. With [`wire::MESSAGE_BYTES`] this bounds the memory that a hanging server costs: 32
/// MiB.
const OUTGOING: usize = 512;
const INCOMING: usize = 1_024;

/// Rings reach the ears of this process at once and those of others through NATS. While NATS is unreachable only the others
/// miss them; every ear is rung once when it is back.
pub struct NatsBus {
    ears: Arc<DoorbellListeners>,
    link: ServerLink,
    bells: String,
    posts: String,
    counts: Arc<BusCounts>,
    /// Ends with the bus.
    _listening: JoinSet<()>,
}

/// Counts messages, each of which carries many bells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusCounters {
    pub published: u64,
    pub received: u64,
    /// Messages that were never sent, because NATS was unreachable or too slow.
    pub dropped: u64,
    /// Subscriptions that ended and were renewed.
    pub lapsed: u64,
}

#[derive(Default)]
struct BusCounts {
    published: AtomicU64,
    received: AtomicU64,
    dropped: AtomicU64,
}

impl NatsBus {
    /// Waits briefly for the servers. If they are unreachable, the bus works inside this process and keeps trying to
    /// connect.
    pub async fn connect(options: &Options, entropy: Arc<dyn Entropy>) -> Result<Self, ConnectError> {
        let (bells, posts) = (options.subject("bell")?, options.subject("workers")?);
        let ears = Arc::new(DoorbellListeners::default());
        let purpose = Purpose {
            name: format!("lockgate {} bell", options.installation),
            unserved: options.subject("unserved")?,
            echo: false,
            outgoing: OUTGOING,
            incoming: INCOMING,
        };
        let everyone = Arc::clone(&ears);
        let link = ServerLink::open(options, purpose, entropy, move || everyone.ring_all()).await?;
        let (rung, posted) = (link.subscribe(bells.clone(), None).await?, link.subscribe(posts.clone(), None).await?);
        link.settled().await;
        let counts = Arc::new(BusCounts::default());
        let mut listening = JoinSet::new();
        listening.spawn(listen(rung, Arc::clone(&ears), Arc::clone(&counts)));
        listening.spawn(read_posts(posted, Arc::clone(&ears)));
        Ok(Self { ears, link, bells, posts, counts, _listening: listening })
    }

    pub fn health(&self) -> ConnectionHealth {
        self.link.health()
    }

    pub fn counters(&self) -> BusCounters {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let BusCounts { published, received, dropped } = &*self.counts;
        BusCounters {
            published: read(published),
            received: read(received),
            dropped: read(dropped),
            lapsed: self.link.lapsed().ended(),
        }
    }

    fn publish(&self, ring: &DoorbellBatch) {
        for message in ring.messages() {
            let left = self.leaves_at_once(&self.bells, message);
            let count = if left { &self.counts.published } else { &self.counts.dropped };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether the sending task exists and had room for the message. Runs outside of tokio's task budget, which would make a
    /// channel with room look full.
    fn leaves_at_once(&self, subject: &str, message: Vec<u8>) -> bool {
        if self.link.client().connection_state() != State::Connected {
            return false;
        }
        let publish = self.link.client().publish(subject.to_owned(), message.into());
        matches!(tokio::task::unconstrained(publish).now_or_never(), Some(Ok(())))
    }
}

#[async_trait]
impl Bus for NatsBus {
    async fn ring(&self, bells: Vec<Bell>) {
        let ring = DoorbellBatch::from(bells);
        self.ears.ring(&ring);
        self.publish(&ring);
    }

    fn listen(&self, bell: Bell) -> Ear {
        DoorbellListeners::listen(&self.ears, bell)
    }

    fn overhear(&self) -> Overheard {
        self.ears.overhear()
    }

    async fn post(&self, seen: Vec<Sighting>) {
        for message in posts::messages(&seen) {
            // A post that cannot leave now is dropped, because it is repeated soon.
            self.leaves_at_once(&self.posts, message);
        }
    }

    fn sightings(&self) -> Sightings {
        self.ears.sightings()
    }

    fn away(&self) -> Option<String> {
        match self.health() {
            ConnectionHealth::Connected => None,
            ConnectionHealth::Away(why) => Some(why),
        }
    }
}

async fn listen(mut rung: Subscription, ears: Arc<DoorbellListeners>, counts: Arc<BusCounts>) {
    loop {
        let message = match rung.next().await {
            Delivery::Message(message) => message,
            Delivery::Again => {
                ears.ring_all();
                continue;
            }
            // The bus reports itself as unreachable, so the loops poll, more slowly.
            Delivery::Gone => return,
        };
        counts.received.fetch_add(1, Ordering::Relaxed);
        match DoorbellBatch::read(&message.payload) {
            Some(ring) => ears.ring_from_afar(&ring),
            // Probably from a newer release. It may be for any listener, so all are rung.
            None => ears.ring_all(),
        }
    }
}

async fn read_posts(mut posted: Subscription, ears: Arc<DoorbellListeners>) {
    loop {
        let message = match posted.next().await {
            Delivery::Message(message) => message,
            // Posts are repeated regularly, so a gap closes by itself.
            Delivery::Again => continue,
            Delivery::Gone => return,
        };
        match posts::read(&message.payload) {
            Some(seen) => ears.saw_from_afar(seen),
            // Probably from another release. Its workers are known less well here.
            None => tracing::debug!("what another process says of its workers cannot be read"),
        }
    }
}
