//! Pools as an operator sees them: listed, paused, resumed, drained.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_core::audit::AuditAction;
use lockgate_core::ids::{PoolName, SessionId, WorkerId};
use lockgate_core::pools::{Closed, Pool, PoolStates};
use lockgate_core::request::Caller;
use lockgate_ports::{Activation, Bell, SnapshotKind};

use super::to_the_end;
use crate::error::ApiError;
use crate::{Engine, Inner};

/// A pool with what is going on in it.
#[derive(Clone, Debug)]
pub struct PoolView {
    pub pool: Pool,
    pub closed: Option<Closed>,
    /// Patterns of the topics that lead to it.
    pub topics: Vec<String>,
    pub workers: usize,
    pub slots: u64,
    /// Attempts its workers hold.
    pub busy: u64,
    /// Jobs that have it as their first choice and wait.
    pub waiting: u64,
}

/// Two operators at once: each conflict means that the other one was served.
const CONFLICTS_MAX: usize = 8;

impl Engine {
    /// All of them, unless the lanes cannot say what waits.
    pub async fn pools(&self) -> Result<Vec<PoolView>, ApiError> {
        let mut waiting: BTreeMap<PoolName, u64> = BTreeMap::new();
        for depth in self.inner.ports.lanes.depths(usize::MAX).await? {
            if let Some(pool) = depth.pool {
                *waiting.entry(pool).or_default() += depth.waiting;
            }
        }
        Ok(self.pool_views(|pool| waiting.get(pool).copied()))
    }

    /// One pool, for who changed it: that is told in any case, if need be with what waited when the lanes last said it.
    pub async fn pool(&self, name: &PoolName) -> Option<PoolView> {
        let pools = self.pools().await.unwrap_or_else(|_| {
            let known = self.inner.levels.borrow().clone();
            self.pool_views(|pool| known.get(pool).map(|level| level.waiting))
        });
        pools.into_iter().find(|view| view.pool.name == *name)
    }

    fn pool_views(&self, waiting: impl Fn(&PoolName) -> Option<u64>) -> Vec<PoolView> {
        let routing = self.inner.routing();
        let workers = self.workers();
        let view = |pool: &Pool| {
            let members = || workers.iter().filter(|view| view.profile.pool == pool.name);
            PoolView {
                closed: routing.closed(&pool.name),
                topics: routing.pools.patterns(&pool.name).map(str::to_owned).collect(),
                workers: members().count(),
                slots: members().map(|view| u64::from(view.profile.slots)).sum(),
                busy: members().map(|view| view.busy as u64).sum(),
                waiting: waiting(&pool.name).unwrap_or_default(),
                pool: pool.clone(),
            }
        };
        routing.pools.pools().map(view).collect()
    }

    /// Pauses or drains a pool, or opens it again. Once this has answered, a closed pool starts nothing new.
    pub async fn set_pool_state(&self, caller: &Caller, pool: &PoolName, state: Option<Closed>) -> Result<(), ApiError> {
        let routing = self.inner.routing();
        // One that is gone from the file can only be forgotten.
        let forgotten = state.is_none() && routing.closed(pool).is_some();
        if routing.pools.pool(pool).is_none() && !forgotten {
            let known: Vec<&str> = routing.pools.pools().map(|pool| pool.name.as_str()).collect();
            let more = format!(" (known: {})", known.join(", "));
            return Err(ApiError::NoSuch { what: "pool", name: pool.to_string(), more });
        }
        let (inner, caller, pool) = (self.inner.clone(), caller.clone(), pool.clone());
        to_the_end(async move { inner.change_pool_state(&caller, &pool, state).await }).await?
    }

    /// Lets the sessions of a worker finish what they hold and leave, whichever process they are attached to. How many there
    /// are.
    pub async fn drain_worker(&self, caller: &Caller, worker: &WorkerId) -> Result<usize, ApiError> {
        let sessions = self.inner.edge.look(|edge| edge.sessions_of(worker));
        if sessions.is_empty() {
            let more = " attached; list them first".to_owned();
            return Err(ApiError::NoSuch { what: "worker", name: worker.to_string(), more });
        }
        let (inner, caller, worker) = (self.inner.clone(), caller.clone(), worker.clone());
        to_the_end(async move { inner.send_away(&caller, &worker, sessions).await }).await?
    }
}

impl Inner {
    async fn send_away(&self, caller: &Caller, worker: &WorkerId, sessions: Vec<SessionId>) -> Result<usize, ApiError> {
        // The row first: whoever holds the stream may die, and then another one must know.
        self.ports.store.send_away(&sessions).await?;
        let effects = self.edge.step(|edge, _| edge.on_sent_away(&sessions));
        self.perform(effects).await;
        self.ports.bus.ring(vec![Bell::sessions()]).await;
        let subject: Arc<str> = worker.as_str().into();
        let detail = serde_json::json!({ "sessions": sessions.len() });
        let entry = self.entry(caller, AuditAction::WorkerDrained, &subject, &detail);
        self.ports.store.append_audit(vec![entry]).await?;
        Ok(sessions.len())
    }

    async fn change_pool_state(&self, caller: &Caller, pool: &PoolName, state: Option<Closed>) -> Result<(), ApiError> {
        for _ in 0..CONFLICTS_MAX {
            // What is added to must be what is replaced, or another operator's word is lost.
            let active = self.ports.store.active(SnapshotKind::PoolStates).await?;
            let known = active.as_ref().map_or_else(|| Ok(PoolStates::default()), |active| PoolStates::read(&active.text));
            let known = known.map_err(|error| ApiError::Internal(format!("the pool states cannot be read: {error}")))?;
            let states = known.with(pool.clone(), state);
            if states == known {
                return Ok(self.configs_once().await?);
            }
            let subject: Arc<str> = pool.as_str().into();
            let detail = serde_json::json!({ "state": state });
            let activation = Activation {
                kind: SnapshotKind::PoolStates,
                id: states.id(),
                text: states.text().into(),
                actor: caller.actor.clone(),
                expected: active.map_or(0, |active| active.version),
                audit: self.entry(caller, AuditAction::PoolStateChanged, &subject, &detail),
            };
            match self.put_config_in_force(activation).await {
                Err(ApiError::Outdated(_)) => {}
                other => return other.map(|_| ()),
            }
        }
        Err(ApiError::Unavailable("others keep changing pools; try again".into()))
    }
}
