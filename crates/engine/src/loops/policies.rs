//! Keeps the kernel at the policy, and routing at the configuration, that the Store has in force, whichever process activated them
//! and whatever became of the answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lockgate_core::audit::{AuditAction, AuditEntry};
use lockgate_core::ids::ActorId;
use lockgate_core::request::Json;
use lockgate_ports::{Activation, Active, Elsewhere, SnapshotKind, StoreError};
use tokio::sync::watch;

use super::tick;
use crate::Inner;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    while tick(&mut stop, inner.settings.expire_every).await {
        let policy = inner.policies_once().await;
        if let Err(error) = &policy {
            inner.health.store_failed(error);
            tracing::warn!(%error, "the policy in force could not be read; trying again with the next tick");
        }
        let configs = inner.configs_once().await;
        if let Err(error) = &configs {
            inner.health.store_failed(error);
            tracing::warn!(%error, "the configuration in force could not be read; trying again with the next tick");
        }
        if policy.is_err() || configs.is_err() {
            inner.metrics.loops.failed("policies");
        }
    }
}

impl Inner {
    /// How many attempts that had not started were called back.
    pub(crate) async fn policies_once(&self) -> Result<usize, StoreError> {
        let active = self.ports.store.active(SnapshotKind::Policy).await?;
        if self.ports.kernel.is_elsewhere() {
            return match self.ports.kernel.decided_elsewhere().await {
                Some(elsewhere) => self.follow(active, elsewhere).await,
                None => {
                    self.recollect(active.as_ref());
                    self.compare(active).await
                }
            };
        }
        self.adopt_active(active.as_ref());
        self.compare(active).await
    }

    fn adopt_active(&self, active: Option<&Active>) {
        match active {
            Some(active) if active.id != self.ports.kernel.snapshot() => self.adopt(&active.id, &active.text),
            Some(_) => {}
            None => self.ports.kernel.adopt_builtin(),
        }
        self.governed.store(true, Ordering::Relaxed);
    }

    /// Jobs and results come before a new process has read the policy in force: nothing is decided by less. A kernel elsewhere
    /// knows its own.
    pub(crate) async fn governed(&self) {
        if self.governed.load(Ordering::Relaxed) || self.ports.kernel.is_elsewhere() {
            return;
        }
        match self.ports.store.active(SnapshotKind::Policy).await {
            Ok(active) => self.adopt_active(active.as_ref()),
            // Nothing is decided until it can be read, and what waits for that says so.
            Err(error) => self.health.store_failed(&error),
        }
    }

    /// Calls back what the policy in force does not allow, once for each policy.
    async fn compare(&self, active: Option<Active>) -> Result<usize, StoreError> {
        let Some(active) = active.filter(|active| active.id != *self.recalled.lock()) else { return Ok(0) };
        let recalled = self.recall(&active.id).await?;
        self.wake.dispatch.notify_one();
        Ok(recalled)
    }

    /// The kernel elsewhere is silent: what it, or a neighbour who heard it, last said is in the Store.
    fn recollect(&self, active: Option<&Active>) {
        if let Some(active) = active.filter(|active| active.id != self.ports.kernel.snapshot()) {
            self.adopt(&active.id, &active.text);
        }
    }

    /// Notes the policy of a kernel elsewhere as the one in force, so that every dispatch is held to it.
    async fn follow(&self, active: Option<Active>, elsewhere: Elsewhere) -> Result<usize, StoreError> {
        if active.as_ref().is_some_and(|active| active.id == elsewhere.id) {
            return self.compare(active).await;
        }
        let actor = ActorId::from("safety-kernel");
        let audit = AuditEntry {
            at: self.ports.clock.now(),
            tenant: "default".into(),
            actor: actor.clone(),
            action: AuditAction::PolicyActivated,
            subject: elsewhere.id.clone(),
            detail: Json::null(),
        };
        let expected = active.map_or(0, |active| active.version);
        let Elsewhere { id, text } = elsewhere;
        let activation = Activation { kind: SnapshotKind::Policy, id, text, actor, expected, audit };
        // Another call followed first: the next tick sees whether that was the same.
        let _ = self.ports.store.activate(activation).await?;
        let active = self.ports.store.active(SnapshotKind::Policy).await?;
        self.compare(active).await
    }
}
