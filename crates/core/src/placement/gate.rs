//! Decides which pools of a route are open.

use crate::pools::{Closed, Pool, Route, Routing};

/// Whether the jobs of a shape may use a pool of its route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PoolGate {
    Open,
    Closed(Closed),
    /// An earlier pool of the route is paused. Jobs wait for a paused pool, so they go no further.
    Behind,
}

/// The pools of a route in order. Jobs skip a draining pool and wait for a paused one.
pub(super) fn gates<'a>(routing: &'a Routing, route: &'a Route) -> impl Iterator<Item = (&'a Pool, PoolGate)> {
    let mut paused = false;
    route.pools().iter().filter_map(|name| routing.pools.pool(name)).map(move |pool| {
        let closed = routing.closed(&pool.name);
        let gate = match closed {
            _ if paused => PoolGate::Behind,
            None => PoolGate::Open,
            Some(closed) => PoolGate::Closed(closed),
        };
        paused |= closed == Some(Closed::Paused);
        (pool, gate)
    })
}
