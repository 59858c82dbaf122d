//! Pools that operators paused or drain. Stored apart from the configuration, which is a file.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{BUILTIN_DEFAULT, Pools};
use crate::config::snapshot;
use crate::ids::PoolName;

/// The id of [`PoolStates::default`].
pub const ALL_OPEN: &str = "builtin:open";

/// The state of a pool that an operator closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closed {
    /// Its workers get no new jobs, and its jobs wait for it.
    Paused,
    /// Its workers get no new jobs; its jobs go to the other pools of their topic, if there are any.
    Draining,
}

/// The closed pools. All others are open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PoolStates(BTreeMap<PoolName, Closed>);

/// Identifies a configuration and the pool states: those under which a worker was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutingId {
    pub pools: Arc<str>,
    pub states: Arc<str>,
}

impl Default for RoutingId {
    fn default() -> Self {
        Self { pools: BUILTIN_DEFAULT.into(), states: ALL_OPEN.into() }
    }
}

/// The configuration and the pool states: everything that routing depends on.
#[derive(Clone, Debug, Default)]
pub struct Routing {
    pub pools: Arc<Pools>,
    pub states: PoolStates,
    id: RoutingId,
}

impl Routing {
    pub fn new(pools: Arc<Pools>, states: PoolStates) -> Self {
        let id = RoutingId { pools: pools.snapshot().clone(), states: states.id() };
        Self { pools, states, id }
    }

    pub fn id(&self) -> &RoutingId {
        &self.id
    }

    pub fn closed(&self, pool: &PoolName) -> Option<Closed> {
        self.states.0.get(pool).copied()
    }
}

impl PoolStates {
    /// Reads what [`text`](Self::text) wrote.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// A hash of the content.
    pub fn id(&self) -> Arc<str> {
        if self.0.is_empty() {
            return ALL_OPEN.into();
        }
        snapshot("states", &self.text())
    }

    /// A copy with one pool changed; `None` opens it.
    #[must_use]
    pub fn with(&self, pool: PoolName, state: Option<Closed>) -> Self {
        let mut states = self.0.clone();
        match state {
            Some(closed) => states.insert(pool, closed),
            None => states.remove(&pool),
        };
        Self(states)
    }
}
