//! Connections without a call under way. They may stay for as long as there is room, and make room for new ones when it gets scarce:
//! else a few thousand clients that hold connections open and ask nothing would keep all others waiting.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::Response;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::answers::kept_until_the_end;

/// A connection that was used a moment ago is likely to be used again, so it is not asked to leave before this.
const IDLE_MIN: Duration = Duration::from_millis(200);

/// All connections of one socket that are idle, in the order in which they became so.
#[derive(Default)]
pub(super) struct Idlers(Mutex<IdleQueue>);

#[derive(Default)]
struct IdleQueue {
    last: u64,
    waiting: BTreeMap<u64, (Instant, CancellationToken)>,
}

impl Idlers {
    /// Asks the connection that has been idle for the longest to leave; whether there is one.
    pub(super) fn dismiss_longest(&self) -> bool {
        let mut queue = self.0.lock();
        match queue.waiting.first_entry() {
            Some(first) if first.get().0.elapsed() >= IDLE_MIN => {
                first.remove().1.cancel();
                true
            }
            _ => false,
        }
    }

    fn enter(&self, leave: &CancellationToken) -> u64 {
        let mut queue = self.0.lock();
        queue.last += 1;
        let number = queue.last;
        queue.waiting.insert(number, (Instant::now(), leave.clone()));
        number
    }

    fn withdraw(&self, number: u64) {
        self.0.lock().waiting.remove(&number);
    }
}

/// One connection: how many calls are under way on it, and whether it has to leave. Clones are of the same connection.
#[derive(Clone)]
pub(super) struct Presence(Arc<ConnectionState>);

struct ConnectionState {
    idlers: Arc<Idlers>,
    leave: CancellationToken,
    busy: Mutex<Busy>,
}

struct Busy {
    calls: usize,
    /// Among the idle ones, while no call is under way.
    number: Option<u64>,
}

impl Presence {
    /// A connection is idle from its beginning on.
    pub(super) fn new(idlers: Arc<Idlers>) -> Self {
        let leave = CancellationToken::new();
        let number = Some(idlers.enter(&leave));
        Self(Arc::new(ConnectionState { idlers, leave, busy: Mutex::new(Busy { calls: 0, number }) }))
    }

    /// Resolves when the connection has to make room.
    pub(super) async fn dismissed(&self) {
        self.0.leave.cancelled().await;
    }

    pub(super) fn is_idle(&self) -> bool {
        self.0.busy.lock().calls == 0
    }

    pub(super) fn call(&self) -> CallInProgress {
        let mut busy = self.0.busy.lock();
        busy.calls += 1;
        if let Some(number) = busy.number.take() {
            self.0.idlers.withdraw(number);
        }
        drop(busy);
        CallInProgress(self.clone())
    }
}

impl Drop for ConnectionState {
    fn drop(&mut self) {
        if let Some(number) = self.busy.get_mut().number {
            self.idlers.withdraw(number);
        }
    }
}

/// A call under way, until its answer has been given or is no longer wanted.
pub(super) struct CallInProgress(Presence);

impl CallInProgress {
    pub(super) fn until_the_end_of(self, response: Response<Body>) -> Response<Body> {
        kept_until_the_end(response, self)
    }
}

impl Drop for CallInProgress {
    fn drop(&mut self) {
        let state = &*self.0.0;
        let mut busy = state.busy.lock();
        busy.calls -= 1;
        if busy.calls == 0 && !state.leave.is_cancelled() {
            busy.number = Some(state.idlers.enter(&state.leave));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_goes_first_and_who_has_a_call_under_way_stays() {
        let idlers = Arc::new(Idlers::default());
        let [busy, first, second] = [(); 3].map(|()| Presence::new(idlers.clone()));
        let call = busy.call();
        assert!(!idlers.dismiss_longest(), "they have just come");
        tokio::time::advance(IDLE_MIN).await;
        drop(first.call());
        assert!(idlers.dismiss_longest() && second.0.leave.is_cancelled(), "the other one had a call since");
        assert!(!idlers.dismiss_longest() && !busy.is_idle());
        tokio::time::advance(IDLE_MIN).await;
        assert!(idlers.dismiss_longest() && first.0.leave.is_cancelled());
        drop(call);
        tokio::time::advance(IDLE_MIN).await;
        assert!(busy.is_idle() && idlers.dismiss_longest() && busy.0.leave.is_cancelled());
        drop([busy, first, Presence::new(idlers.clone())]);
        assert!(idlers.0.lock().waiting.is_empty(), "who is gone is not asked");
    }
}
