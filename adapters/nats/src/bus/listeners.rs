//! The listeners of this process.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_core::ids::JobId;
use lockgate_ports::{Bell, Ear, Overheard, Sighting, Sightings};
use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast};

use super::wire::DoorbellBatch;

/// Batches kept for a slow listener. It misses some and delays no other.
const BATCHES: usize = 1_024;

pub(crate) struct DoorbellListeners {
    listening: Mutex<ListenerTable>,
    jobs: broadcast::Sender<Arc<[JobId]>>,
    seen: broadcast::Sender<Arc<[Sighting]>>,
}

#[derive(Default)]
struct ListenerTable {
    by_bell: BTreeMap<Bell, Vec<(u64, Arc<Notify>)>>,
    /// How many ears wait for jobs. Most processes wait for lanes only; then job ids need not be looked up.
    for_jobs: usize,
    next: u64,
}

impl Default for DoorbellListeners {
    fn default() -> Self {
        Self { listening: Mutex::default(), jobs: broadcast::Sender::new(BATCHES), seen: broadcast::Sender::new(BATCHES) }
    }
}

impl DoorbellListeners {
    /// Another process rang.
    pub(crate) fn ring_from_afar(&self, ring: &DoorbellBatch) {
        if !ring.jobs.is_empty() {
            self.tell(Arc::clone(&ring.jobs));
        }
        self.ring(ring);
    }

    pub(crate) fn ring(&self, ring: &DoorbellBatch) {
        let listening = self.listening.lock();
        if ring.lanes {
            listening.ring(&Bell::Lanes);
        }
        if listening.for_jobs > 0 {
            ring.jobs.iter().for_each(|id| listening.ring(&Bell::Job(id.clone())));
        }
    }

    /// Unknown rings may have been missed: listeners for all jobs get an empty batch.
    pub(crate) fn ring_all(&self) {
        self.tell(Arc::default());
        self.listening.lock().by_bell.values().flatten().for_each(|(_, ear)| ear.notify_one());
    }

    pub(crate) fn listen(ears: &Arc<Self>, bell: Bell) -> Ear {
        let notify = Arc::new(Notify::new());
        let mut listening = ears.listening.lock();
        let id = listening.next;
        listening.next += 1;
        listening.for_jobs += usize::from(bell != Bell::Lanes);
        listening.by_bell.entry(bell.clone()).or_default().push((id, Arc::clone(&notify)));
        drop(listening);
        Ear::new(notify, Box::new(UntilDrop { ears: Arc::clone(ears), bell, id }))
    }

    pub(crate) fn overhear(&self) -> Overheard {
        Overheard::new(self.jobs.subscribe())
    }

    pub(crate) fn sightings(&self) -> Sightings {
        Sightings::new(self.seen.subscribe())
    }

    /// Another process posted its workers.
    pub(crate) fn saw_from_afar(&self, seen: Vec<Sighting>) {
        // The send fails without a listener, and then no post is missed.
        let _ = self.seen.send(seen.into());
    }

    fn tell(&self, jobs: Arc<[JobId]>) {
        // The send fails without a listener, and then no ring is missed.
        let _ = self.jobs.send(jobs);
    }
}

impl ListenerTable {
    fn ring(&self, bell: &Bell) {
        self.by_bell.get(bell).into_iter().flatten().for_each(|(_, ear)| ear.notify_one());
    }
}

struct UntilDrop {
    ears: Arc<DoorbellListeners>,
    bell: Bell,
    id: u64,
}

impl Drop for UntilDrop {
    fn drop(&mut self) {
        let mut listening = self.ears.listening.lock();
        listening.for_jobs -= usize::from(self.bell != Bell::Lanes);
        if let Some(of_bell) = listening.by_bell.get_mut(&self.bell) {
            of_bell.retain(|(id, _)| *id != self.id);
            if of_bell.is_empty() {
                listening.by_bell.remove(&self.bell);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_dropped_ears() {
        let ears = Arc::new(DoorbellListeners::default());
        let first = DoorbellListeners::listen(&ears, Bell::Lanes);
        let second = DoorbellListeners::listen(&ears, Bell::Lanes);
        let job = DoorbellListeners::listen(&ears, Bell::Job("a".into()));
        assert_eq!(ears.listening.lock().for_jobs, 1);
        drop((first, job));
        assert_eq!(ears.listening.lock().for_jobs, 0);
        assert_eq!(ears.listening.lock().by_bell.len(), 1);
        drop(second);
        assert!(ears.listening.lock().by_bell.is_empty());
    }
}
