//! A lane as the scripts need it, derived from its key and the layout.

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
    /// Whether the server has the lane's definition, as far as this process knows.
    known: AtomicBool,
}

/// The field names are those of the scripts.
#[derive(Serialize)]
struct Definition<'a> {
    /// The lane's key.
    j: &'a str,
    /// The first pool of the route; empty if no pool takes the shape.
    q: &'a str,
    /// The pool's limit of concurrent jobs, or -1.
    b: i64,
    p: u8,
    t: &'a str,
    /// Id and text of the shape's requirements on a worker.
    f: &'a str,
    s: &'a str,
    /// The weight of the lane's tenant.
    w: u32,
    g: Vec<LimitArg<'a>>,
}

/// A limit as the scripts know it.
#[derive(Serialize)]
pub(super) struct LimitArg<'a> {
    /// The limit's id.
    i: String,
    /// The limit's key.
    k: &'a str,
    /// The limit's bound.
    m: u32,
    /// The limit's rate: `r` starts in `n` milliseconds; 0 for none.
    r: u32,
    n: u64,
}

/// A lane in a call: by id if the server has its definition, otherwise with it.
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
        // Jobs that no pool takes are never claimed, so their lane needs no limits.
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

    /// The lane with its definition, unless the server has it.
    pub(super) fn mention(&self, number: u64) -> Mention<'_> {
        if self.known.load(Ordering::Relaxed) { Mention::Known(&self.id, number) } else { self.define(number) }
    }

    /// The lane with its definition.
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

/// The pool's limit of concurrent jobs, or -1 without one.
pub(super) fn bound(pools: &Pools, pool: &lockgate_core::ids::PoolName) -> i64 {
    pools.pool(pool).and_then(|pool| pool.max_concurrent).map_or(-1, i64::from)
}
