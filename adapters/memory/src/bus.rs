//! Doorbells inside one process.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use lockgate_core::ids::JobId;
use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast};

use lockgate_ports::bus::{Bell, Bus, Ear, Overheard};
use lockgate_ports::registry::{Sighting, Sightings};

/// A doorbell bus between the simulated or real parts of one process. A ring without listeners costs one lookup.
#[derive(Debug)]
pub struct MemoryBus {
    ears: Arc<Mutex<Doorbells>>,
    /// Receives what the other members send.
    heard: BusMessage,
    /// Every member of this bus.
    members: Arc<Mutex<Vec<BusMessage>>>,
    away: Mutex<Option<String>>,
}

/// The channels on which one member receives from all others.
#[derive(Clone, Debug)]
struct BusMessage {
    jobs: broadcast::Sender<Arc<[JobId]>>,
    seen: broadcast::Sender<Arc<[Sighting]>>,
}

/// Batches kept for a listener that reads slowly.
const BATCHES: usize = 1_024;

impl Default for MemoryBus {
    fn default() -> Self {
        Self::join(Arc::default(), Arc::default())
    }
}

impl MemoryBus {
    /// Another member of this bus, as another process would have it.
    pub fn another(&self) -> Self {
        Self::join(self.ears.clone(), self.members.clone())
    }

    fn join(ears: Arc<Mutex<Doorbells>>, members: Arc<Mutex<Vec<BusMessage>>>) -> Self {
        let heard = BusMessage { jobs: broadcast::Sender::new(BATCHES), seen: broadcast::Sender::new(BATCHES) };
        members.lock().push(heard.clone());
        Self { ears, heard, members, away: Mutex::default() }
    }

    /// Makes `away` report the bus as unreachable. Rings still arrive.
    pub fn set_away(&self, why: Option<&str>) {
        *self.away.lock() = why.map(str::to_owned);
    }

    fn tell_others(&self, bells: &[Bell]) {
        let members = self.members.lock();
        let others = members.iter().map(|other| &other.jobs);
        let mut others = others.filter(|other| !other.same_channel(&self.heard.jobs) && other.receiver_count() > 0);
        let Some(first) = others.next() else { return };
        let job = |bell: &Bell| if let Bell::Job(id) = bell { Some(id.clone()) } else { None };
        let jobs: Arc<[JobId]> = bells.iter().filter_map(job).collect();
        for other in std::iter::once(first).chain(others) {
            // The send fails without a listener, and then no ring is missed.
            let _ = other.send(jobs.clone());
        }
    }
}

#[derive(Debug, Default)]
struct Doorbells {
    /// Looked up and never iterated. The ears of one bell are rung in the order they came.
    by_bell: HashMap<Bell, Vec<(u64, Arc<Notify>)>>,
    next: u64,
}

#[async_trait]
impl Bus for MemoryBus {
    async fn ring(&self, bells: Vec<Bell>) {
        self.tell_others(&bells);
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
        Ear::new(notify, Box::new(Listeners { ears: self.ears.clone(), bell, id }))
    }

    fn overhear(&self) -> Overheard {
        Overheard::new(self.heard.jobs.subscribe())
    }

    async fn post(&self, seen: Vec<Sighting>) {
        let seen: Arc<[Sighting]> = seen.into();
        for other in self.members.lock().iter().filter(|other| !other.seen.same_channel(&self.heard.seen)) {
            // The send fails without a listener, and then no post is missed.
            let _ = other.seen.send(seen.clone());
        }
    }

    fn sightings(&self) -> Sightings {
        Sightings::new(self.heard.seen.subscribe())
    }

    fn away(&self) -> Option<String> {
        self.away.lock().clone()
    }
}

/// Removes its ear from the bell when dropped.
struct Listeners {
    ears: Arc<Mutex<Doorbells>>,
    bell: Bell,
    id: u64,
}

impl Drop for Listeners {
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

    #[tokio::test]
    async fn jobs_that_others_ring_for_are_overheard_and_own_ones_are_not() {
        let bus = MemoryBus::default();
        let other = bus.another();
        let mut jobs = bus.overhear();
        bus.ring(vec![Bell::Job("own".into())]).await;
        other.ring(vec![Bell::Job("a".into()), Bell::Lanes, Bell::Job("b".into())]).await;
        assert_eq!(*jobs.next().await, ["a".into(), "b".into()]);
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
