//! Guessing must be slow. Failures are counted by where they come from, and who fails often is told to wait.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::peer::network;

/// Failures that cost nothing, as after a typing error or a rotated key.
const FREE: u32 = 10;
/// How long a failure is remembered.
const FORGIVEN_AFTER: Duration = Duration::from_secs(10);
/// How often an unknown credential is looked up all the same for a network that failed too often: a good
/// credential may be new to this process, and come from behind the same address as a guesser.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Networks remembered. More at once are an attack from many places, and then every stranger waits.
const ADDRESSES_MAX: usize = 10_000;

#[derive(Default)]
pub(super) struct Brake {
    failed: Mutex<HashMap<IpAddr, Failures>>,
    /// When something unknown may be looked up next for those whom the table has no room for.
    strangers_look_at: Mutex<Option<Instant>>,
}

struct Failures {
    count: u32,
    until: Instant,
    /// When something unknown may be looked up next, once there are too many.
    look_at: Instant,
}

impl Brake {
    /// Counts a failure. How long to wait before the next try, if there were too many.
    pub(super) fn failed(&self, from: IpAddr) -> Option<Duration> {
        let (mut failed, now, from) = (self.failed.lock(), Instant::now(), network(from));
        if failed.len() >= ADDRESSES_MAX && !failed.contains_key(&from) {
            failed.retain(|_, failures| failures.until > now);
        }
        if failed.len() >= ADDRESSES_MAX && !failed.contains_key(&from) {
            return Some(FORGIVEN_AFTER);
        }
        let failures = failed.entry(from).or_insert(Failures { count: 0, until: now, look_at: now });
        if failures.until < now {
            failures.count = 0;
        }
        failures.count = failures.count.saturating_add(1);
        failures.until = now + FORGIVEN_AFTER;
        (failures.count > FREE).then_some(FORGIVEN_AFTER)
    }

    /// How long to wait before an unknown credential is looked up, if there were too many failures.
    pub(super) fn holds_back(&self, from: IpAddr) -> Option<Duration> {
        let (mut failed, now, from) = (self.failed.lock(), Instant::now(), network(from));
        if failed.len() >= ADDRESSES_MAX && !failed.contains_key(&from) {
            return take_turn(self.strangers_look_at.lock().get_or_insert(now), now);
        }
        let failures = failed.get_mut(&from).filter(|failures| failures.count >= FREE && failures.until >= now)?;
        take_turn(&mut failures.look_at, now)
    }
}

/// One look, and none for a while.
fn take_turn(look_at: &mut Instant, now: Instant) -> Option<Duration> {
    if now < *look_at {
        return Some(FORGIVEN_AFTER);
    }
    *look_at = now + LOOK_EVERY;
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_fails_often_is_told_to_wait_and_others_are_not() {
        let brake = Brake::default();
        let (bad, good) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        for _ in 0..FREE {
            assert_eq!(brake.failed(bad), None);
        }
        assert_eq!(brake.failed(bad), Some(FORGIVEN_AFTER));
        assert_eq!(brake.failed(good), None);
        tokio::time::advance(FORGIVEN_AFTER + Duration::from_millis(1)).await;
        assert_eq!(brake.failed(bad), None, "it begins anew");
    }

    #[tokio::test(start_paused = true)]
    async fn who_fails_often_gets_little_looked_up_and_others_all() {
        let brake = Brake::default();
        let (bad, good) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        for _ in 0..FREE {
            assert_eq!([brake.holds_back(bad), brake.holds_back(bad)], [None, None]);
            brake.failed(bad);
        }
        assert_eq!(brake.holds_back(bad), None, "now and then one");
        assert_eq!([brake.holds_back(bad), brake.holds_back(bad)], [Some(FORGIVEN_AFTER); 2]);
        assert_eq!([brake.holds_back(good), brake.holds_back(good)], [None, None]);
        tokio::time::advance(LOOK_EVERY).await;
        assert_eq!([brake.holds_back(bad), brake.holds_back(bad)], [None, Some(FORGIVEN_AFTER)]);
        tokio::time::advance(FORGIVEN_AFTER).await;
        assert_eq!([brake.holds_back(bad), brake.holds_back(bad)], [None, None], "it is forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn a_network_counts_as_one() {
        let brake = Brake::default();
        let last =
            (0..=FREE).map(|n| brake.failed(IpAddr::from([1, 2, 3, 4, 0, 0, 0, u16::try_from(n).expect("small")]))).last();
        assert_eq!(last, Some(Some(FORGIVEN_AFTER)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_attack_from_everywhere_does_not_grow_without_end() {
        let brake = Brake::default();
        let mut told = None;
        for n in 0..=u32::try_from(ADDRESSES_MAX).expect("small") {
            told = brake.failed(IpAddr::from(n.to_be_bytes()));
        }
        assert_eq!(told, Some(FORGIVEN_AFTER));
        assert_eq!(brake.failed.lock().len(), ADDRESSES_MAX);
        let further = |n: u8| brake.holds_back(IpAddr::from([250, 0, 0, n]));
        assert_eq!([further(1), further(2), further(3)], [None, Some(FORGIVEN_AFTER), Some(FORGIVEN_AFTER)], "one for all");
    }
}
