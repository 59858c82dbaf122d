//! Who gets what: claims for the places that the roster plans, pool by pool.

use std::collections::BTreeMap;

use lockgate_core::edge::Want;
use lockgate_core::ids::PoolName;
use lockgate_core::lane::{Priority, Shape};
use lockgate_core::pools::{Closed, DEFAULT_POOL, Route, Routing};
use lockgate_core::time::Timestamp;
use lockgate_ports::{ClaimRequest, Demand, Seat};

use super::dispatch::DispatchBatch;
use crate::Inner;

impl Inner {
    /// Limits by time may have room again: only claims let time pass, so this claim has no seats. When the next one has.
    pub(super) async fn pass_time(&self) -> Option<Timestamp> {
        let (pool, now) = (PoolName::from(DEFAULT_POOL), self.ports.clock.now());
        let nobody = ClaimRequest { pool: pool.clone(), serving: pool, seats: Vec::new(), limit: 0, now };
        self.ports.lanes.claim(nobody).await.again_at
    }

    /// Jobs of a pool's lanes go to its own workers; those that find no place there, to the workers of the next pool in
    /// their route, unless they are to wait because the pool is paused. Every pool's own jobs come first. What is urgent and
    /// found no place anywhere.
    pub(super) async fn claim_all(
        &self,
        mut wants: BTreeMap<PoolName, Vec<Want>>,
        routing: &Routing,
        out: &mut DispatchBatch,
        again_at: &mut Option<Timestamp>,
    ) -> Vec<Want> {
        let mut unplaced = Vec::new();
        for rank in 0.. {
            let mut short: BTreeMap<PoolName, Vec<Want>> = BTreeMap::new();
            for (pool, wants) in wants {
                let choices = self.choices(wants, routing, rank, &mut unplaced);
                for (serving, group) in choices {
                    let left = self.claim_for(&pool, &serving, group, out, again_at).await;
                    if routing.closed(&serving) != Some(Closed::Paused) && !left.is_empty() {
                        short.entry(pool.clone()).or_default().extend(left);
                    }
                }
            }
            if short.is_empty() {
                break;
            }
            wants = short;
        }
        unplaced.retain(|want: &Want| want.urgency == Priority::Critical);
        unplaced
    }

    /// Jobs by the pool they try after `rank` others; those that have none left are `unplaced`.
    fn choices(
        &self,
        wants: Vec<Want>,
        routing: &Routing,
        rank: usize,
        unplaced: &mut Vec<Want>,
    ) -> BTreeMap<PoolName, Vec<Want>> {
        let mut choices: BTreeMap<PoolName, Vec<Want>> = BTreeMap::new();
        for want in wants {
            let Ok(route) = routing.pools.route(&want.shape) else { continue };
            match self.choice(&want.shape, &route, routing, rank) {
                Some(serving) => choices.entry(serving).or_default().push(want),
                None => unplaced.push(want),
            }
        }
        choices
    }

    /// What is urgent and found no place takes one from what has not begun. Asked after everything of this round was sent: it
    /// may be that.
    pub(super) async fn make_room(&self, urgent: Vec<Want>, routing: &Routing) {
        for want in urgent {
            if let Ok(route) = routing.pools.route(&want.shape) {
                let effects = self.edge.step(|edge, _| edge.on_urgent(&want.shape, &route, routing, want.urgency));
                self.perform(effects).await;
            }
        }
    }

    /// The pool that a shape tries after `rank` others: its route, but the pool of the worker it prefers first, while that
    /// one is open and the worker has room.
    fn choice(&self, shape: &Shape, route: &Route, routing: &Routing, rank: usize) -> Option<PoolName> {
        let preferred = shape.preferred_worker.as_ref().and_then(|worker| self.edge.look(|edge| edge.ready_in(worker)));
        let open = |pool: &PoolName| route.contains(pool) && routing.closed(pool).is_none();
        let Some(first) = preferred.filter(open) else { return route.pools().get(rank).cloned() };
        let others = route.pools().iter().filter(|pool| **pool != first).cloned();
        std::iter::once(first.clone()).chain(others).nth(rank)
    }

    /// One claim for the free places of one pool's workers. What found no place.
    async fn claim_for(
        &self,
        pool: &PoolName,
        serving: &PoolName,
        wants: Vec<Want>,
        out: &mut DispatchBatch,
        again_at: &mut Option<Timestamp>,
    ) -> Vec<Want> {
        let plan = self.edge.ask(|edge, now| edge.plan(serving, &wants, now));
        if !plan.seats.is_empty() && self.config.is_laid_out_by(&plan.routing.pools) {
            let request = ClaimRequest {
                pool: pool.clone(),
                serving: serving.clone(),
                seats: plan.seats.iter().map(|seat| Seat { shapes: seat.shapes.clone(), free: seat.free }).collect(),
                limit: self.settings.batch_max,
                now: self.ports.clock.now(),
            };
            let began = self.traces.begin();
            let claimed = self.ports.lanes.claim(request).await;
            *again_at = claimed.again_at;
            let tickets = self.tickets(claimed.claims, began, &plan).await;
            self.take_places(tickets, out).await;
        }
        let short = wants.into_iter().zip(plan.short).filter(|(_, short)| *short > 0);
        short.map(|(want, jobs)| Want { jobs, ..want }).collect()
    }
}

/// What waits, by the pool in whose lanes it does. What no pool may take is left out: it cannot be claimed.
pub(super) fn by_pool(demand: Vec<Demand>) -> BTreeMap<PoolName, Vec<Want>> {
    let mut pools: BTreeMap<PoolName, Vec<Want>> = BTreeMap::new();
    for Demand { pool, shape, urgency, waiting } in demand {
        if let Some(pool) = pool {
            pools.entry(pool).or_default().push(Want { shape, urgency, jobs: waiting });
        }
    }
    pools
}
