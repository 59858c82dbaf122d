//! Who of those that wait in lanes waits for a slot, and who for something else.
//!
//! Only the former make others wait. A job that nobody fits, or that a limit holds back, takes no slot from anybody however long
//! it stays, so one tenant's must not shut the pool to the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::PoolName;
use lockgate_core::lane::{LaneKey, Shape};
use lockgate_core::placement::WaitsFor;
use lockgate_core::time::Timestamp;
use lockgate_ports::LaneDepth;

use crate::edge::Edge;

/// A lane that a limit held back so lately waits for that limit. If its jobs are quick it is let through again and again, and
/// whoever looks just then must not take all that waits in it for something that is about to start.
const HELD_LATELY: Duration = Duration::from_secs(10);

/// When limits last held lanes back.
#[derive(Default)]
pub(super) struct LimitedLanes(BTreeMap<LaneKey, Timestamp>);

/// What waits in the lanes of one pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PoolBacklog {
    /// For a slot, by priority.
    pub(super) waiting: [u64; 4],
    /// For something else.
    pub(super) blocked: u64,
    /// Nobody is there to take anything.
    pub(super) stalled: bool,
}

/// Jobs of one pool that ask the same of a worker and that no limit holds back, by priority.
type Crowds = BTreeMap<(PoolName, Arc<Shape>), [u64; 4]>;

impl LimitedLanes {
    /// What waits in each pool's lanes.
    pub(super) fn sort_out(&mut self, depths: &[LaneDepth], edge: &Edge, now: Timestamp) -> BTreeMap<PoolName, PoolBacklog> {
        self.0.retain(|_, at| *at <= now && now.since(*at) < HELD_LATELY);
        let (mut queues, mut crowds): (BTreeMap<PoolName, PoolBacklog>, Crowds) = Default::default();
        for (pool, depth) in depths.iter().filter_map(|depth| Some((depth.pool.as_ref()?, depth))) {
            queues.entry(pool.clone()).or_default().blocked += depth.waiting;
            if !self.is_held(depth, now) && depth.unclaimed > 0 {
                let crowd = crowds.entry((pool.clone(), depth.lane.shape.fit().into_owned())).or_default();
                crowd[depth.lane.priority as usize] += depth.unclaimed;
            }
        }
        let waiting: Vec<_> = crowds.iter().map(|((_, shape), jobs)| (shape.clone(), jobs.iter().sum::<u64>())).collect();
        set_apart(&mut queues, &crowds, &edge.ask(|edge, _| edge.look_over(&waiting)));
        queues
    }

    fn is_held(&mut self, depth: &LaneDepth, now: Timestamp) -> bool {
        if depth.limited {
            self.0.insert(depth.lane.clone(), now);
        }
        depth.limited || self.0.contains_key(&depth.lane)
    }
}

/// Takes those that wait for a slot from those that wait apart. Where nobody is there at all, that is everybody.
fn set_apart(queues: &mut BTreeMap<PoolName, PoolBacklog>, crowds: &Crowds, waits: &[WaitsFor]) {
    let crowds = || crowds.iter().zip(waits).map(|(((pool, _), jobs), waits)| (pool, jobs, *waits));
    let served: BTreeSet<&PoolName> =
        crowds().filter(|(_, _, waits)| *waits != WaitsFor::Anyone).map(|(pool, ..)| pool).collect();
    for (pool, jobs, waits) in crowds() {
        let stalled = waits == WaitsFor::Anyone && !served.contains(pool);
        let Some(queue) = queues.get_mut(pool).filter(|_| stalled || waits == WaitsFor::Slot) else { continue };
        queue.stalled |= stalled;
        for (waiting, jobs) in queue.waiting.iter_mut().zip(jobs) {
            *waiting += jobs;
            queue.blocked = queue.blocked.saturating_sub(*jobs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crowds(of: &[(&str, &str, u64)]) -> Crowds {
        let crowd = |(pool, topic, jobs): &(&str, &str, u64)| {
            let shape = Arc::new(Shape::of(*topic));
            ((PoolName::from(*pool), shape), [0, 0, *jobs, 0])
        };
        of.iter().map(crowd).collect()
    }

    fn sorted(of: &[(&str, &str, u64)], waits: &[WaitsFor]) -> Vec<(u64, u64, bool)> {
        let crowds = crowds(of);
        let mut queues: BTreeMap<PoolName, PoolBacklog> = BTreeMap::new();
        for ((pool, _), jobs) in &crowds {
            queues.entry(pool.clone()).or_default().blocked += jobs.iter().sum::<u64>();
        }
        set_apart(&mut queues, &crowds, waits);
        queues.values().map(|queue| (queue.waiting.iter().sum(), queue.blocked, queue.stalled)).collect()
    }

    #[test]
    fn only_who_waits_for_a_slot_is_in_the_way() {
        use WaitsFor::{Anyone, Fit, Nothing, Slot};
        let pool = [("p", "a", 1), ("p", "b", 2), ("p", "c", 4), ("p", "d", 8)];
        assert_eq!(sorted(&pool, &[Nothing, Slot, Fit, Anyone]), [(2, 13, false)]);
        assert_eq!(sorted(&pool, &[Nothing, Fit, Fit, Fit]), [(0, 15, false)]);
        assert_eq!(sorted(&pool, &[Anyone; 4]), [(15, 0, true)], "whoever comes will find them all");
        let two = [("p", "a", 1), ("q", "a", 2)];
        assert_eq!(sorted(&two, &[Anyone, Slot]), [(1, 0, true), (2, 0, false)]);
    }
}
