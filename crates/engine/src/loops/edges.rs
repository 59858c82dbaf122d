//! Renews this edge's lease, and closes edges of processes that are gone.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::EdgeId;
use lockgate_ports::{Mint, SessionRow, StoreError};
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Lead, tick};
use crate::settings::Roles;
use crate::{Inner, Settings};

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let mut rest = inner.settings.edge_renew;
    while tick(&mut stop, rest).await {
        rest = inner.settings.edge_renew;
        match inner.edges_once().await {
            Ok(ClosedEdges::Nobody) => {}
            // Their sessions have a moment to attach elsewhere, and no more.
            Ok(ClosedEdges::Others) => rest /= 2,
            Err(error) => {
                inner.health.store_failed(&error);
                inner.metrics.loops.failed("edges");
                tracing::warn!(%error, "edge leases could not be checked; trying again with the next tick");
            }
        }
        inner.metrics.loops.deferred(inner.health.deferred());
    }
}

/// Whether edges of other processes were closed.
pub(crate) enum ClosedEdges {
    Nobody,
    Others,
}

impl Inner {
    pub(crate) async fn edges_once(&self) -> Result<ClosedEdges, StoreError> {
        let Roles { gateway, scheduler, .. } = self.settings.roles;
        let asked = Instant::now();
        if gateway {
            self.renew_once(asked).await.inspect_err(|error| self.health.not_renewed(error))?;
        }
        if gateway && self.settings.exclusive_store {
            // In a cluster, the round that checks other edges does it.
            let open = self.ports.store.open_sessions().await?;
            self.cut_overtaken(&open).await;
            self.close_unknown(open).await?;
        }
        let leads = scheduler && self.leadership.leads(Lead::Closer, self.settings.edge_renew).await?;
        if !gateway {
            // It has no edge: that it was told who leads says as much.
            self.health.renewed(asked);
        }
        if !leads {
            return Ok(ClosedEdges::Nobody);
        }
        match self.close_dead_edges().await {
            Err(error) if !error.is_damage() => Err(error),
            closed => {
                self.lose_rest().await?;
                closed
            }
        }
    }

    async fn renew_once(&self, asked: Instant) -> Result<(), StoreError> {
        if !self.ports.store.renew_edge(&self.edge.id(), self.settings.edge_ttl).await? {
            self.start_over().await?;
        }
        self.edge.ask(|edge, _| edge.on_renewed(self.edge.moment(asked)));
        self.health.renewed(asked);
        Ok(())
    }

    /// Another process closed this edge while it was away. Its sessions are lost already: they attach anew to a new edge.
    async fn start_over(&self) -> Result<(), StoreError> {
        let edge = EdgeId::from(self.ports.entropy.uuid(self.ports.clock.now()));
        tracing::warn!(edge = %edge, "edge lease was lost; workers attach again");
        self.ports.store.renew_edge(&edge, self.settings.edge_ttl).await?;
        let effects = self.edge.step(|state, _| state.on_lease_lost(edge));
        self.perform(effects).await;
        Ok(())
    }

    /// Sessions that are this edge's by the Store, and that are not known here: the call that attached them was cut off before it was
    /// told so. If their workers do not come again, no other process would ever miss them.
    pub(crate) async fn close_unknown(&self, open: Vec<SessionRow>) -> Result<(), StoreError> {
        let own = self.edge.id();
        let is_unknown = |row: &SessionRow| row.edge == own && !self.edge.look(|edge| edge.knows(&row.session, row.epoch));
        let unknown: Vec<_> = open.into_iter().filter(is_unknown).collect();
        let heard = Instant::now().checked_sub(self.settings.edge_renew * 2);
        if heard.is_none_or(|since| !self.health.could_hear_since(since)) {
            // While the Store is away no worker can attach.
            self.unregistered.forget();
            return Ok(());
        }
        let Settings { edge_renew, lost_after, .. } = self.settings;
        for row in self.unregistered.over(unknown, edge_renew, Duration::ZERO, lost_after) {
            tracing::warn!(session = %row.session, "worker did not return after an interrupted attach; session closed");
            self.close_each(&row.session, row.epoch).await?;
        }
        Ok(())
    }

    /// A mass of losses must not keep this edge from being renewed: what is left is for the next round.
    pub(super) fn give_way_at(&self) -> Instant {
        Instant::now() + self.settings.edge_renew / 2
    }

    /// Do no harm: an edge is closed only if this process watched that it was not renewed, on time in which its own Store calls
    /// succeeded.
    async fn close_dead_edges(&self) -> Result<ClosedEdges, StoreError> {
        let Settings { edge_renew, edge_ttl, edge_grace, lost_after, .. } = self.settings;
        let open = self.ports.store.open_edges().await?;
        let still = self.watched.still(open, edge_renew * 3, edge_ttl.max(edge_grace));
        // Workers of a process that died need this long to find another one.
        let heard = Instant::now().checked_sub(edge_grace.max(lost_after));
        if heard.is_none_or(|since| !self.health.could_hear_since(since)) {
            return Ok(ClosedEdges::Nobody);
        }
        let closed = if still.is_empty() { Vec::new() } else { self.ports.store.close_edges(&still, edge_grace).await? };
        for edge in &closed {
            tracing::warn!(%edge, "edge lease expired; its workers must attach to another process");
        }
        // What they stored and did not live to offer is in no lane. Lanes that are not shared were rebuilt since they died.
        if !closed.is_empty() && !self.settings.exclusive_store {
            self.wake.reoffer.notify_one();
        }
        let adrift = self.ports.store.open_sessions().await?.into_iter().filter(|row| row.edge_closed).collect();
        let until = self.give_way_at();
        for row in self.detached.over(adrift, edge_renew, edge_ttl + edge_grace, lost_after) {
            if Instant::now() >= until {
                break;
            }
            tracing::warn!(session = %row.session, edge = %row.edge, "session lost: its edge is gone");
            self.close_each(&row.session, row.epoch).await?;
        }
        Ok(if closed.is_empty() { ClosedEdges::Nobody } else { ClosedEdges::Others })
    }
}
