//! Plans which workers get the next jobs of a shape.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::Arc;

use super::Roster;
use super::candidate_index::IndexId;
use super::explain::Refusal;
use super::rank::Rank;
use crate::ids::{PoolName, WorkerId};
use crate::lane::Shape;
use crate::pools::DispatchMode;

impl<K: Ord + Clone> Roster<K> {
    /// Places at most `want` jobs of the shape in one pool of its route, on the least loaded worker first; each place counts
    /// as taken while the next is chosen. The worker that the shape prefers comes first, in whichever pool of the route it
    /// is. With `ahead`, jobs may also wait in workers when no slot is free. Planning changes nothing: the caller reports
    /// placed jobs with [`Roster::change`].
    ///
    /// Some places may be on workers of other processes: the least loaded of a direct pool, the worker that the shape
    /// prefers, and in a queue pool those that are free while the workers here are over a limit. The caller leaves the jobs
    /// of those places to their processes.
    pub fn plan(&mut self, shape: &Arc<Shape>, serving: &PoolName, want: usize, ahead: bool) -> Vec<(K, u32)> {
        let preferred = shape.preferred_worker.as_ref();
        let (serving, others) = self.ask(shape, |outlook| {
            let stops = outlook.way.as_ref().map_or(&[][..], |way| &way.stops);
            let serving = stops.iter().find(|stop| stop.pool == *serving).map(|stop| stop.bench);
            let others: Vec<IndexId> = preferred.iter().flat_map(|_| stops).map(|stop| stop.bench).collect();
            (serving, others)
        });
        let Some(bench) = serving.and_then(|id| self.benches.get(id)) else { return Vec::new() };
        let mut places = preferred.map_or_else(Vec::new, |name| self.preferred(name, &others, want, ahead));
        let want = want - places.iter().map(|(_, jobs)| *jobs as usize).sum::<usize>();
        let taken = spread(&bench.ready, want, ahead, self.given, &mut places);
        if taken < want && bench.last.last().is_some_and(|rank| rank.over) {
            spread(&bench.last, want - taken, ahead, self.given, &mut places);
        }
        places
    }

    /// Whether some worker of this pool fits the shape, even if busy or away.
    pub fn anyone_fits(&mut self, shape: &Arc<Shape>, serving: &PoolName) -> bool {
        let bench = self.ask(shape, |outlook| {
            let stops = outlook.way.as_ref().map_or(&[][..], |way| &way.stops);
            stops.iter().find(|stop| stop.pool == *serving).map(|stop| stop.bench)
        });
        bench.and_then(|id| self.benches.get(id)).is_some_and(|bench| bench.fit > 0)
    }

    /// Why waiting is useless: no pool may take the shape, or all its pools are `direct` and no worker there fits.
    pub fn is_hopeless(&mut self, shape: &Arc<Shape>) -> Option<Refusal> {
        let direct = self.ask(shape, |outlook| {
            let way = outlook.way.as_ref().map_err(|unrouted| Refusal::Unrouted(unrouted.clone()))?;
            let direct = !way.paused && way.stops.iter().all(|stop| stop.dispatch == DispatchMode::Direct);
            Ok(if direct { way.stops.iter().map(|stop| stop.bench).collect() } else { Vec::new() })
        });
        match direct {
            Err(refusal) => Some(refusal),
            Ok(benches) => {
                let nobody = |id: &IndexId| self.benches.get(*id).is_some_and(|bench| bench.fit == 0);
                (!benches.is_empty() && benches.iter().all(nobody)).then_some(Refusal::NoWorkers)
            }
        }
    }

    /// Places on the sessions of one worker that are in one of the indexes.
    fn preferred(&self, name: &WorkerId, benches: &[IndexId], want: usize, ahead: bool) -> Vec<(K, u32)> {
        let slots = self.by_name.get(name).into_iter().flatten();
        let sessions = slots.filter_map(|slot| Some((*slot, self.workers.get(*slot)?)));
        let fit = sessions.filter(|(_, worker)| worker.benches.iter().any(|bench| benches.contains(bench)));
        let mut ranks: Vec<Rank<K>> = fit.filter_map(|(slot, worker)| worker.healthy(slot)).collect();
        ranks.sort_unstable();
        let mut left = u32::try_from(want).unwrap_or(u32::MAX);
        let mut places = Vec::new();
        for rank in ranks {
            let jobs = rank.room(ahead).min(left);
            left -= jobs;
            if jobs > 0 {
                places.push((rank.key, jobs));
            }
        }
        places
    }
}

/// Adds places by rank and returns how many. The workers already in `places` have no room left.
fn spread<K: Ord + Clone>(
    ranks: &BTreeSet<Rank<K>>,
    want: usize,
    ahead: bool,
    given: u64,
    places: &mut Vec<(K, u32)>,
) -> usize {
    let full = places.len();
    let mut taken = 0;
    // Workers without a free slot rank last, so the first one ends the search.
    let mut ready = ranks.iter().take_while(|rank| rank.room(ahead) > 0).peekable();
    let mut again: BinaryHeap<Reverse<(Rank<K>, usize)>> = BinaryHeap::new();
    let mut now = given;
    for left in (0..want).rev() {
        while ready.next_if(|rank| places[..full].iter().any(|(key, _)| *key == rank.key)).is_some() {}
        let fresh = match (ready.peek(), again.peek()) {
            (Some(fresh), Some(Reverse((used, _)))) => *fresh < used,
            (fresh, _) => fresh.is_some(),
        };
        let chosen = if fresh {
            ready.next().map(|rank| {
                places.push((rank.key.clone(), 0));
                (rank.clone(), places.len() - 1)
            })
        } else {
            again.pop().map(|Reverse(used)| used)
        };
        let Some((rank, at)) = chosen else { break };
        places[at].1 += 1;
        taken += 1;
        now += 1;
        if left > 0 {
            again.extend(rank.after_one(now, ahead).map(|rank| Reverse((rank, at))));
        }
    }
    taken
}
