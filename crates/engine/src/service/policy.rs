//! Policies: put in force, looked at, taken back.

use std::sync::Arc;

use lockgate_core::policy::Policy;
use lockgate_core::request::{Caller, FieldError};
use lockgate_ports::{Activation, Active, SnapshotKind};

use super::config::{Activated, ConfigText, outdated};
use super::to_the_end;
use crate::error::ApiError;
use crate::{Engine, Inner};

impl Engine {
    /// Checks the text, puts it in force and calls back what it no longer allows. Once this has answered, nothing that it
    /// denies starts any more.
    pub async fn activate_policy(&self, caller: &Caller, new: ConfigText) -> Result<Activated, ApiError> {
        if self.inner.ports.kernel.is_elsewhere() {
            return Err(ApiError::invalid("policy", "is decided by the safety kernel elsewhere; put it in force there"));
        }
        let policy = load(&new.file, &new.text)?;
        let snapshot = policy.snapshot().clone();
        let active = self.inner.ports.store.active(SnapshotKind::Policy).await?;
        let in_force = active.as_ref().map_or(0, |active| active.version);
        if new.expected.is_some_and(|expected| expected != in_force) {
            return Err(outdated(SnapshotKind::Policy, in_force));
        }
        if let Some(active) = active.filter(|active| active.id == snapshot) {
            let recalled = self.inner.policies_once().await?;
            self.inner.let_recalled_pass(recalled).await;
            return Ok(Activated { version: active.version, snapshot, unchanged: true, recalled });
        }
        let activation = Activation {
            kind: SnapshotKind::Policy,
            id: snapshot.clone(),
            text: new.text.into(),
            actor: caller.actor.clone(),
            expected: in_force,
            audit: self.inner.config_entry(caller, SnapshotKind::Policy, &snapshot, &new.file),
        };
        let inner = self.inner.clone();
        to_the_end(async move { inner.put_in_force(activation).await }).await?
    }

    /// Puts an earlier snapshot in force again.
    pub async fn roll_back_policy(&self, caller: &Caller, id: &str, expected: Option<u64>) -> Result<Activated, ApiError> {
        let text = self.config_text(SnapshotKind::Policy, id).await?;
        self.activate_policy(caller, ConfigText { file: id.to_owned(), text: text.to_string(), expected }).await
    }

    /// Takes the policy that the Store has in force, so that the first job is judged by it. What is in force.
    pub async fn load_policy(&self) -> Result<Option<Active>, ApiError> {
        self.inner.policies_once().await?;
        self.active_config(SnapshotKind::Policy).await
    }
}

/// Every error of the text, each with its place.
pub(super) fn load(file: &str, text: &str) -> Result<Policy, ApiError> {
    let field = |error: lockgate_core::policy::ConfigError| FieldError::new("policy", error);
    Policy::load(file, text).map_err(|errors| ApiError::Invalid(errors.into_iter().map(field).collect()))
}

impl Inner {
    async fn put_in_force(&self, activation: Activation) -> Result<Activated, ApiError> {
        let (id, text) = (activation.id.clone(), activation.text.clone());
        // From this commit on, no dispatch under another policy is committed.
        let version = match self.ports.store.activate(activation).await? {
            Ok(version) => version,
            Err(newer) => return Err(outdated(SnapshotKind::Policy, newer.in_force)),
        };
        self.adopt(&id, &text);
        let recalled = self.recall(&id).await?;
        self.wake.dispatch.notify_one();
        self.let_recalled_pass(recalled).await;
        Ok(Activated { version, snapshot: id, unchanged: false, recalled })
    }

    /// The text was checked before it was stored, so only another version of Lockgate can fail to read it.
    pub(crate) fn adopt(&self, id: &Arc<str>, text: &str) {
        match self.ports.kernel.adopt(id, text) {
            Ok(()) => tracing::info!(snapshot = %id, "policy in force"),
            Err(errors) => {
                tracing::error!(snapshot = %id, ?errors, "the policy in force cannot be read here; nothing is decided");
            }
        }
    }
}
