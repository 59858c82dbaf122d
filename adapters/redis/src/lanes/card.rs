//! What follows from a lane's key and the layout, as the scripts are told.

use std::sync::atomic::{AtomicBool, Ordering};

use lockgate_core::lane::LaneKey;
use lockgate_core::pools::{Limit, Pools};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::names;

pub(super) struct Card {
    pub(super) id: String,
    pub(super) key: LaneKey,
    definition: Box<RawValue>,
    /// The server was told what the lane is, and did not say since that it forgot.
    known: AtomicBool,
}

/// The names of the fields are those that the scripts use.
#[derive(Serialize)]
struct Definition<'a> {
    /// The key.
    j: &'a str,
    /// First pool of the route; empty when no pool takes it.
    q: &'a str,
    /// Jobs that run in that pool at once, or -1.
    b: i64,
    p: u8,
    t: &'a str,
    /// Id and shape of what it asks of a worker.
    f: &'a str,
    s: &'a str,
    /// Its tenant's weight.
    w: u32,
    g: Vec<LimitArg<'a>>,
}

/// A limit as the scripts know it.
#[derive(Serialize)]
pub(super) struct LimitArg<'a> {
    /// Id.
    i: String,
    /// Key.
    k: &'a str,
    /// Bound.
    m: u32,
    /// Rate: so many in so many milliseconds, or none.
    r: u32,
    n: u64,
}

/// A lane in a call: known to the server, or with its definition.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Mention<'a> {
    Known(&'a str, u64),
    Defined(&'a str, u64, &'a RawValue),
}

impl Card {
    pub(super) fn new(key: LaneKey, pools: &Pools) -> Result<Self, serde_json::Error> {
        let json = serde_json::to_string(&key)?;
        let shape = serde_json::to_string(&**key.shape.fit())?;
        let route = pools.route(&key.shape).ok();
        let first = route.as_ref().map(|route| route.first());
        // Whatever no pool takes needs no limit.
        let limits = if first.is_some() { pools.limits(&key) } else { Vec::new() };
        let definition = Definition {
            j: &json,
            q: first.map_or("", |pool| pool.as_str()),
            b: first.map_or(-1, |pool| bound(pools, pool)),
            p: key.priority as u8,
            t: key.tenant.as_str(),
            f: &names::id(&shape),
            s: &shape,
            w: pools.fairness().tenants.get(&key.tenant).copied().unwrap_or(1),
            g: limits.iter().map(LimitArg::new).collect(),
        };
        let definition = serde_json::value::to_raw_value(&definition)?;
        Ok(Self { id: names::id(&json), key, definition, known: AtomicBool::new(false) })
    }

    /// With its definition, unless the server knows it.
    pub(super) fn mention(&self, number: u64) -> Mention<'_> {
        if self.known.load(Ordering::Relaxed) { Mention::Known(&self.id, number) } else { self.define(number) }
    }

    /// With its definition.
    pub(super) fn define(&self, number: u64) -> Mention<'_> {
        Mention::Defined(&self.id, number, &self.definition)
    }

    pub(super) fn is_known(&self, known: bool) {
        self.known.store(known, Ordering::Relaxed);
    }
}

impl<'a> LimitArg<'a> {
    pub(super) fn new(limit: &'a Limit) -> Self {
        let window = |rate: lockgate_core::rate::Rate| u64::try_from(rate.window.as_millis()).unwrap_or(u64::MAX).max(1);
        Self {
            i: names::id(&limit.key),
            k: &limit.key,
            m: limit.max.unwrap_or(u32::MAX),
            r: limit.rate.map_or(0, |rate| rate.max.max(1)),
            n: limit.rate.map_or(0, window),
        }
    }
}

/// Jobs that run in a pool at once, or -1 when nothing bounds them.
pub(super) fn bound(pools: &Pools, pool: &lockgate_core::ids::PoolName) -> i64 {
    pools.pool(pool).and_then(|pool| pool.max_concurrent).map_or(-1, i64::from)
}
