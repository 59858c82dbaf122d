//! Watches how long ago the server heard this worker, for topics that must stop before their lease ends.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::state::SessionState;

/// The time between the stop signal and the end of the lease. Handlers get one second of it.
const MARGIN: Duration = Duration::from_secs(2);

/// When attempts of `stop` topics must be told to stop, unless the server is heard before. None until the first welcome.
pub(crate) type StopAt = Option<Instant>;

/// How long after the server last heard the worker its attempts must stop. Short leases keep three quarters of their length.
pub(crate) fn stop_after(lost_after: Duration) -> Duration {
    lost_after - MARGIN.min(lost_after / 4)
}

pub(crate) async fn watch(session_state: Arc<SessionState>, mut stop_at: watch::Receiver<StopAt>) {
    loop {
        let at = *stop_at.borrow_and_update();
        let Some(at) = at else {
            if stop_at.changed().await.is_err() {
                return;
            }
            continue;
        };
        tokio::select! {
            biased;
            moved = stop_at.changed() => if moved.is_err() { return },
            () = sleep_until(at) => {
                let stopped = session_state.stop_leased();
                if stopped > 0 {
                    tracing::warn!(stopped, "server unreachable: attempts bound to their lease were stopped");
                }
                if stop_at.changed().await.is_err() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signal_comes_two_seconds_before_the_end_of_a_lease() {
        assert_eq!(stop_after(Duration::from_secs(10)), Duration::from_secs(8));
        assert_eq!(stop_after(Duration::from_secs(2)), Duration::from_millis(1_500));
    }
}
