//! Places for connections: so many in all, and for each network a part of them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::Reception;
use super::idle::{Idlers, Presence};
use crate::metrics::ConnectionMetrics;
use crate::peer::PeerAddress;
use crate::shares::{PerClientLimit, SharePermit};

/// One network may have one in so many places. Connections may be idle for as long as they like, so a client that opens as
/// many as there are places would lock out everybody, those who look whether the process lives among them.
const SHARE_OF: usize = 8;
/// While fewer places than one in so many are free, each new connection asks the one that has been idle for the longest to leave. So a
/// new one finds a place at once, although the one that leaves has a moment to say goodbye.
const KEPT_FREE_OF: usize = 16;
/// A new connection without a place looks this often whether one has become idle.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What was sent and is not taken for this long ends a connection. A peer that never reads would hold its place for ever.
const UNTAKEN_FOR: Duration = Duration::from_secs(60);
/// Refusals and failures are warned of this often and no more: they may come a thousand times a second.
const WARNED_EVERY: Duration = Duration::from_secs(60);

pub(super) struct Places {
    room: Arc<Semaphore>,
    kept_free: usize,
    idlers: Arc<Idlers>,
    shares: Option<Arc<PerClientLimit<IpAddr>>>,
    metrics: ConnectionMetrics,
    /// When the log last said that connections are refused.
    warned_at: Mutex<Option<Instant>>,
    /// When the log last said that connections cannot be accepted.
    failed_at: Mutex<Option<Instant>>,
}

/// An accepted connection that is not served yet.
pub(super) struct Guest {
    pub(super) stream: TcpStream,
    pub(super) address: SocketAddr,
    pub(super) place: ConnectionPermit,
    pub(super) presence: Presence,
}

/// Held as long as the connection is.
pub(super) struct ConnectionPermit {
    _part: Option<SharePermit<IpAddr>>,
    _permit: OwnedSemaphorePermit,
    open: Gauge,
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.open.dec();
    }
}

impl Places {
    pub(super) fn new(reception: &Reception) -> Self {
        let max = reception.connections_max;
        let shares = reception.shared.then(|| PerClientLimit::new(max / SHARE_OF));
        Self {
            room: Arc::new(Semaphore::new(max)),
            kept_free: max / KEPT_FREE_OF,
            idlers: Arc::default(),
            shares,
            metrics: reception.metrics.clone(),
            warned_at: Mutex::new(None),
            failed_at: Mutex::new(None),
        }
    }

    /// A place is taken first: without one the connection is left to the system's backlog, which costs nothing here.
    pub(super) async fn accept(&self, listener: &TcpListener) -> io::Result<Guest> {
        let permit = self.place().await?;
        loop {
            let (stream, address) = listener.accept().await?;
            // Where it comes from is known only now. One too many is closed at once: waiting, it would be in others' way.
            let Some(part) = self.part(address) else {
                self.refuse(address);
                continue;
            };
            self.metrics.open.inc();
            let place = ConnectionPermit { _part: part, _permit: permit, open: self.metrics.open.clone() };
            prepare(&stream);
            if self.room.available_permits() < self.kept_free {
                self.dismiss_longest();
            }
            return Ok(Guest { stream, address, place, presence: Presence::new(self.idlers.clone()) });
        }
    }

    /// Without a free one, idle connections are asked to leave until there is one.
    async fn place(&self) -> io::Result<OwnedSemaphorePermit> {
        if let Ok(permit) = self.room.clone().try_acquire_owned() {
            return Ok(permit);
        }
        self.metrics.full.inc();
        loop {
            self.dismiss_longest();
            let free = self.room.clone().acquire_owned();
            if let Ok(permit) = tokio::time::timeout(LOOK_EVERY, free).await {
                return permit.map_err(io::Error::other);
            }
        }
    }

    fn dismiss_longest(&self) {
        if self.idlers.dismiss_longest() {
            self.metrics.dismissed.inc();
        }
    }

    /// The system did not hand over a connection, for lack of file descriptors most likely: an idle connection gives its own back.
    pub(super) fn failed(&self, error: &io::Error) {
        self.metrics.unaccepted.inc();
        self.dismiss_longest();
        if is_time_to_warn(&self.failed_at) {
            tracing::warn!(%error, "accepting a connection failed; check the file descriptor limit (ulimit -n)");
        }
    }

    fn refuse(&self, address: SocketAddr) {
        self.metrics.refused.inc();
        let refused = self.metrics.refused.get();
        if is_time_to_warn(&self.warned_at) {
            tracing::warn!(%address, refused, "connection limit of one network reached; further connections are closed");
        } else {
            tracing::debug!(%address, refused, "a network has as many connections as it may have; one more was closed");
        }
    }

    /// None if there are too many; nothing is counted for this machine's own address.
    fn part(&self, address: SocketAddr) -> Option<Option<SharePermit<IpAddr>>> {
        match self.shares.as_ref().zip(PeerAddress(address).network()) {
            Some((shares, network)) => shares.take(network).map(Some),
            None => Some(None),
        }
    }
}

fn is_time_to_warn(warned_at: &Mutex<Option<Instant>>) -> bool {
    let mut warned_at = warned_at.lock();
    let is_time = warned_at.is_none_or(|at| at.elapsed() >= WARNED_EVERY);
    if is_time {
        *warned_at = Some(Instant::now());
    }
    is_time
}

fn prepare(stream: &TcpStream) {
    // Small answers must leave at once; batching is done above, by what waits.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    if let Err(error) = end_if_untaken_for(UNTAKEN_FOR, stream) {
        tracing::debug!(%error, "TCP_USER_TIMEOUT could not be set");
    }
}

#[cfg(target_os = "linux")]
fn end_if_untaken_for(span: Duration, stream: &TcpStream) -> io::Result<()> {
    socket2::SockRef::from(stream).set_tcp_user_timeout(Some(span))
}

/// Other systems have no such limit; there the share of its network is all that bounds a peer that never reads.
#[cfg(not(target_os = "linux"))]
fn end_if_untaken_for(_: Duration, _: &TcpStream) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(connections_max: usize) -> Places {
        Places::new(&Reception { tls: None, connections_max, shared: true, metrics: ConnectionMetrics::default() })
    }

    #[test]
    fn a_network_has_a_part_of_the_places_and_this_machine_has_all() {
        let places = places(16);
        let from = |text: &str| places.part(text.parse().unwrap());
        let _held = [from("10.0.0.1:1"), from("10.0.0.1:2"), from("[2001:db8::1]:1"), from("[2001:db8::2]:1")]
            .map(|part| part.expect("within the share"));
        assert!(from("10.0.0.1:3").is_none());
        assert!(from("[::ffff:10.0.0.1]:3").is_none(), "the same, through another kind of socket");
        assert!(from("[2001:db8::3]:1").is_none(), "a /64 is one network");
        assert!(from("10.0.0.2:1").is_some() && from("[2001:db8:0:1::1]:1").is_some());
        let local: Vec<_> = (1..50).map(|port| from(&format!("127.0.0.1:{port}"))).collect();
        assert!(local.iter().all(Option::is_some) && from("[::1]:1").is_some());
    }

    #[test]
    fn at_the_door_for_metrics_one_network_may_have_every_place() {
        let places = Places::new(&Reception::of_scrapers(None, 16));
        let from = |port: u16| places.part(SocketAddr::from(([10, 0, 0, 1], port)));
        let held: Vec<_> = (1..=16).map(from).collect();
        assert!(held.iter().all(Option::is_some));
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_are_all_counted_and_warned_of_once_a_minute() {
        let places = places(8);
        let address = SocketAddr::from(([10, 0, 0, 1], 1));
        assert!(is_time_to_warn(&places.warned_at));
        (0..100).for_each(|_| places.refuse(address));
        assert!(!is_time_to_warn(&places.warned_at));
        assert_eq!(places.metrics.refused.get(), 100);
        tokio::time::advance(WARNED_EVERY).await;
        assert!(is_time_to_warn(&places.warned_at));
        assert!(!is_time_to_warn(&places.warned_at));
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_connection_is_given_up_when_its_peer_takes_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let guest = places(1).accept(&listener).await.unwrap();
        assert!(guest.stream.nodelay().unwrap());
        assert_eq!(socket2::SockRef::from(&guest.stream).tcp_user_timeout().unwrap(), Some(UNTAKEN_FOR));
    }
}
