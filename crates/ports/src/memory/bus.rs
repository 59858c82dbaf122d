//! Doorbells inside one process.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::bus::{Bell, Bus, Ear};

/// A ring that nobody listens to costs one look-up.
#[derive(Debug, Default)]
pub struct MemoryBus {
    ears: Arc<Mutex<Ears>>,
}

#[derive(Debug, Default)]
struct Ears {
    /// Looked up, never iterated. The ears of one bell hear it in the order they came.
    by_bell: HashMap<Bell, Vec<(u64, Arc<Notify>)>>,
    next: u64,
}

#[async_trait]
impl Bus for MemoryBus {
    async fn ring(&self, bells: Vec<Bell>) {
        let ears = self.ears.lock();
        if ears.by_bell.is_empty() {
            return;
        }
        for (_, notify) in bells.iter().filter_map(|bell| ears.by_bell.get(bell)).flatten() {
            notify.notify_one();
        }
    }

    fn listen(&self, bell: Bell) -> Ear {
        let notify = Arc::new(Notify::new());
        let mut ears = self.ears.lock();
        let id = ears.next;
        ears.next += 1;
        ears.by_bell.entry(bell.clone()).or_default().push((id, notify.clone()));
        drop(ears);
        Ear::new(notify, Box::new(Listening { ears: self.ears.clone(), bell, id }))
    }
}

/// Takes its ear off the bell when dropped.
struct Listening {
    ears: Arc<Mutex<Ears>>,
    bell: Bell,
    id: u64,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut ears = self.ears.lock();
        if let Some(of_bell) = ears.by_bell.get_mut(&self.bell) {
            of_bell.retain(|(id, _)| *id != self.id);
            if of_bell.is_empty() {
                ears.by_bell.remove(&self.bell);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    async fn hears(ear: &Ear) -> bool {
        timeout(Duration::from_secs(1), ear.heard()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn every_ear_of_a_bell_hears_it_and_others_do_not() {
        let bus = MemoryBus::default();
        let first = bus.listen(Bell::Lanes);
        let second = bus.listen(Bell::Lanes);
        let other = bus.listen(Bell::Job("a".into()));
        bus.ring(vec![Bell::Lanes]).await;
        assert!(hears(&first).await);
        assert!(hears(&second).await);
        assert!(!hears(&other).await);
    }

    #[tokio::test(start_paused = true)]
    async fn rings_while_nobody_waits_are_kept_as_one() {
        let bus = MemoryBus::default();
        let ear = bus.listen(Bell::Lanes);
        bus.ring(vec![Bell::Lanes, Bell::Lanes]).await;
        assert!(hears(&ear).await);
        assert!(!hears(&ear).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_ear_is_forgotten() {
        let bus = MemoryBus::default();
        let kept = bus.listen(Bell::Job("a".into()));
        drop(bus.listen(Bell::Job("a".into())));
        drop(bus.listen(Bell::Job("b".into())));
        assert_eq!(bus.ears.lock().by_bell.values().map(Vec::len).sum::<usize>(), 1);
        bus.ring(vec![Bell::Job("a".into())]).await;
        assert!(hears(&kept).await);
    }
}
