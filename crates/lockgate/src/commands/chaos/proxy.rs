//! A TCP proxy whose connections can be slowed, cut, silenced or reset.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

/// A proxied port.
pub(super) struct Wire {
    pub(super) address: SocketAddr,
    far: Arc<Mutex<SocketAddr>>,
    state: Arc<watch::Sender<ProxyState>>,
    /// Connections taken so far; each has its number.
    dialled: Arc<AtomicU64>,
    accepting: AbortHandle,
}

/// The faults of connections. A number marks the connections that existed when a fault was set.
#[derive(Clone, Copy, Debug, Default)]
struct ProxyState {
    delay: Duration,
    refusing: bool,
    silent_below: u64,
    closed_below: u64,
    /// Closed with RST instead of FIN.
    resetting: bool,
}

impl Wire {
    pub(super) async fn to(far: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (far, state, dialled) = (Arc::new(Mutex::new(far)), Arc::new(watch::Sender::default()), Arc::default());
        let accepting = tokio::spawn(accept(listener, far.clone(), state.clone(), Arc::clone(&dialled))).abort_handle();
        Ok(Self { address, far, state, dialled, accepting })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sends new connections to another address.
    pub(super) fn lead_to(&self, far: SocketAddr) {
        *self.far.lock() = far;
    }

    pub(super) fn dialled(&self) -> u64 {
        self.dialled.load(Ordering::Relaxed)
    }

    pub(super) fn slow(&self, delay: Duration) {
        self.state.send_modify(|state| state.delay = delay);
    }

    /// Closes all connections, and accepts none until it is mended.
    pub(super) fn cut(&self) {
        let below = self.dialled();
        self.state.send_modify(|state| (state.closed_below, state.resetting, state.refusing) = (below, false, true));
    }

    /// Open connections stay open and carry nothing any more.
    pub(super) fn silence(&self) {
        let below = self.dialled();
        self.state.send_modify(|state| state.silent_below = below);
    }

    pub(super) fn reset(&self) {
        let below = self.dialled();
        self.state.send_modify(|state| (state.closed_below, state.resetting) = (below, true));
    }

    /// Removes all faults; silenced connections are reset.
    pub(super) fn mend(&self) {
        self.state.send_modify(|state| {
            let closed_below = state.closed_below.max(state.silent_below);
            *state = ProxyState { silent_below: state.silent_below, closed_below, resetting: true, ..ProxyState::default() };
        });
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(
    listener: TcpListener,
    far: Arc<Mutex<SocketAddr>>,
    state: Arc<watch::Sender<ProxyState>>,
    dialled: Arc<AtomicU64>,
) {
    // Connections end with the wire.
    let mut open = JoinSet::new();
    while let Ok((near, _)) = listener.accept().await {
        while open.try_join_next().is_some() {}
        if state.borrow().refusing {
            continue;
        }
        let number = dialled.fetch_add(1, Ordering::Relaxed);
        let far = *far.lock();
        open.spawn(carry(near, far, number, state.subscribe()));
    }
}

async fn carry(mut near: TcpStream, far: SocketAddr, number: u64, state: watch::Receiver<ProxyState>) {
    let Ok(mut far) = TcpStream::connect(far).await else { return };
    // Only the proxy may add latency, not the kernel.
    if near.set_nodelay(true).is_err() || far.set_nodelay(true).is_err() {
        return;
    }
    let mut ending = state.clone();
    let resetting = {
        let (near_read, near_write) = near.split();
        let (far_read, far_write) = far.split();
        tokio::select! {
            biased;
            closed = ending.wait_for(|state| number < state.closed_below) => closed.is_ok_and(|state| state.resetting),
            () = pump(near_read, far_write, number, state.clone()) => false,
            () = pump(far_read, near_write, number, state) => false,
        }
    };
    if resetting {
        // With nothing to linger for, the kernel ends a connection by RST.
        let _ = near.set_zero_linger().and_then(|()| far.set_zero_linger());
    }
}

/// Carries bytes one way until an end closes.
async fn pump(mut from: ReadHalf<'_>, mut to: WriteHalf<'_>, number: u64, state: watch::Receiver<ProxyState>) {
    let mut chunk = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut chunk).await {
        let ProxyState { delay, silent_below, .. } = *state.borrow();
        if number < silent_below {
            return std::future::pending().await;
        }
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        if to.write_all(&chunk[..length]).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// Says everything back.
    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.split();
                    let _ = tokio::io::copy(&mut read, &mut write).await;
                });
            }
        });
        address
    }

    /// What comes back within a moment: the bytes, the end (0 bytes), or how it failed.
    async fn said(stream: &mut TcpStream, within: Duration) -> Option<std::io::Result<usize>> {
        let _ = stream.write_all(b"hello").await;
        let mut answer = [0; 5];
        tokio::time::timeout(within, stream.read(&mut answer)).await.ok()
    }

    #[tokio::test]
    async fn a_wire_carries_until_it_is_silenced_reset_or_cut() {
        let wire = Wire::to(echo().await).await.expect("a wire");
        let mut silent = TcpStream::connect(wire.address).await.expect("connected");
        assert!(matches!(said(&mut silent, PATIENCE).await, Some(Ok(5))));
        wire.silence();
        let mut fresh = TcpStream::connect(wire.address).await.expect("connected");
        assert!(matches!(said(&mut fresh, PATIENCE).await, Some(Ok(5))), "new connections are not concerned");
        assert!(said(&mut silent, Duration::from_millis(100)).await.is_none(), "open, and nothing comes");
        wire.mend();
        let ended = said(&mut silent, PATIENCE).await;
        assert!(matches!(ended, Some(Err(_))), "{ended:?}");
        assert!(matches!(said(&mut fresh, PATIENCE).await, Some(Ok(5))));

        wire.reset();
        assert!(matches!(said(&mut fresh, PATIENCE).await, Some(Err(_))));
        let mut another = TcpStream::connect(wire.address).await.expect("connected");
        assert!(matches!(said(&mut another, PATIENCE).await, Some(Ok(5))));
        assert_eq!(wire.dialled(), 3);

        wire.cut();
        let mut answer = [0; 5];
        let ended = tokio::time::timeout(PATIENCE, another.read(&mut answer)).await.expect("in time");
        assert!(matches!(ended, Ok(0)), "a polite end: {ended:?}");
        wire.mend();
        let mut mended = TcpStream::connect(wire.address).await.expect("connected");
        assert!(matches!(said(&mut mended, PATIENCE).await, Some(Ok(5))));
    }

    #[tokio::test]
    async fn a_slow_wire_takes_its_time_both_ways() {
        let wire = Wire::to(echo().await).await.expect("a wire");
        let mut stream = TcpStream::connect(wire.address).await.expect("connected");
        wire.slow(Duration::from_millis(100));
        let began = tokio::time::Instant::now();
        assert!(matches!(said(&mut stream, PATIENCE).await, Some(Ok(5))));
        assert!(began.elapsed() >= Duration::from_millis(200));
    }
}
