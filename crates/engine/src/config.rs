//! The configuration in force as this process knows it: pools, what operators closed, timeouts.

use std::sync::Arc;

use lockgate_core::pools::{PoolStates, Pools, Routing};
use lockgate_core::timeouts::Timeouts;
use lockgate_ports::{SnapshotKind, StoreError};
use parking_lot::Mutex;

use crate::Inner;

#[derive(Default)]
pub(crate) struct Config {
    routing: Mutex<Arc<Routing>>,
    timeouts: Mutex<Arc<Timeouts>>,
    /// The pools by which the lanes were last rebuilt from end to end.
    laid_out: Mutex<Option<Arc<str>>>,
}

impl Config {
    pub(crate) fn routing(&self) -> Arc<Routing> {
        self.routing.lock().clone()
    }

    pub(crate) fn timeouts(&self) -> Arc<Timeouts> {
        self.timeouts.lock().clone()
    }
}

impl Inner {
    /// Follows what the Store has in force, whoever put it there. Repeated by the next tick until it went through.
    pub(crate) async fn configs_once(&self) -> Result<(), StoreError> {
        let timeouts = self.config.timeouts();
        if let Some(changed) = self.changed(SnapshotKind::Timeouts, timeouts.snapshot(), Timeouts::load).await? {
            *self.config.timeouts.lock() = Arc::new(changed);
        }
        let known = self.routing();
        let pools = self.changed(SnapshotKind::Pools, &known.id().pools, Pools::load).await?;
        let states = self.changed(SnapshotKind::PoolStates, &known.id().states, |_, text| PoolStates::read(text)).await?;
        if pools.is_some() || states.is_some() {
            let pools = pools.map_or_else(|| known.pools.clone(), Arc::new);
            let routing = Arc::new(Routing::new(pools, states.unwrap_or_else(|| known.states.clone())));
            *self.config.routing.lock() = routing.clone();
            self.edge.adopt(routing.clone());
            tracing::info!(pools = %routing.id().pools, states = %routing.id().states, "pools in force");
        }
        self.lay_out().await?;
        self.wake.dispatch.notify_one();
        Ok(())
    }

    /// Workers come back before a new process has read what is in force: they must not be measured by less.
    pub(crate) async fn configured(&self) -> Result<(), StoreError> {
        if self.config.laid_out.lock().is_some() {
            return Ok(());
        }
        self.configs_once().await
    }

    /// What is in force in the Store, if it is not what is known here.
    async fn changed<T, E: std::fmt::Debug>(
        &self,
        kind: SnapshotKind,
        known: &Arc<str>,
        read: impl FnOnce(&str, &str) -> Result<T, E>,
    ) -> Result<Option<T>, StoreError> {
        let active = self.ports.store.active(kind).await?;
        let Some(active) = active.filter(|active| active.id != *known) else { return Ok(None) };
        let read = read(kind.as_str(), &active.text);
        if let Err(errors) = &read {
            // It was checked before it was stored, so only another version of Lockgate can fail to read it. Dispatches
            // under what is known here conflict, so nothing runs where it must not.
            tracing::error!(kind = kind.as_str(), id = %active.id, ?errors, "what is in force cannot be read here");
        }
        Ok(read.ok())
    }

    /// Puts what waits into the lanes of its pools anew, once for each configuration.
    async fn lay_out(&self) -> Result<(), StoreError> {
        let pools = self.routing().pools.clone();
        if self.config.laid_out.lock().as_ref() == Some(pools.snapshot()) {
            return Ok(());
        }
        let snapshot = pools.snapshot().clone();
        self.ports.lanes.adopt(pools).await;
        self.ports.lanes.hold(self.held_by_workers().await?).await;
        // Read after the lanes were emptied: what is offered from now on lands in the new ones.
        let lanes = self.ports.store.ready_lanes().await?;
        self.ports.lanes.rebuild(lanes).await;
        *self.config.laid_out.lock() = Some(snapshot);
        Ok(())
    }
}
