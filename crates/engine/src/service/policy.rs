//! Policies: put in force, looked at, taken back.

use std::sync::Arc;

use lockgate_core::audit::{Action, AuditEntry};
use lockgate_core::policy::Policy;
use lockgate_core::request::{Caller, FieldError, Json};
use lockgate_ports::{Activation, Active, SnapshotKind, SnapshotRow};

use super::to_the_end;
use crate::error::ApiError;
use crate::{Engine, Inner};

/// A policy text on its way in.
#[derive(Clone, Debug)]
pub struct PolicyText {
    /// Named in errors.
    pub file: String,
    pub text: String,
    /// The version the caller believes to be in force; whatever is, if absent.
    pub expected: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activated {
    pub version: u64,
    pub snapshot: Arc<str>,
    /// It was in force already; nothing changed.
    pub unchanged: bool,
    /// Attempts on their way to a worker that the new policy called back.
    pub recalled: usize,
}

const SNAPSHOTS_MAX: usize = 100;

impl Engine {
    /// Checks the text, puts it in force and calls back what it no longer allows. Once this has answered, nothing that it
    /// denies starts any more.
    pub async fn activate_policy(&self, caller: &Caller, new: PolicyText) -> Result<Activated, ApiError> {
        if self.inner.ports.kernel.is_elsewhere() {
            return Err(ApiError::invalid("policy", "is decided by the safety kernel elsewhere; put it in force there"));
        }
        let policy = load(&new.file, &new.text)?;
        let snapshot = policy.snapshot().clone();
        let active = self.inner.ports.store.active(SnapshotKind::Policy).await?;
        let in_force = active.as_ref().map_or(0, |active| active.version);
        if new.expected.is_some_and(|expected| expected != in_force) {
            return Err(outdated(in_force));
        }
        if let Some(active) = active.filter(|active| active.id == snapshot) {
            self.inner.policies_once().await?;
            return Ok(Activated { version: active.version, snapshot, unchanged: true, recalled: 0 });
        }
        let activation = Activation {
            kind: SnapshotKind::Policy,
            id: snapshot.clone(),
            text: new.text.into(),
            actor: caller.actor.clone(),
            expected: in_force,
            audit: self.entry(caller, &snapshot, &new.file),
        };
        let inner = self.inner.clone();
        to_the_end(async move { inner.put_in_force(activation).await }).await?
    }

    /// Puts an earlier snapshot in force again.
    pub async fn roll_back_policy(&self, caller: &Caller, id: &str, expected: Option<u64>) -> Result<Activated, ApiError> {
        let text = self.policy_text(id).await?;
        self.activate_policy(caller, PolicyText { file: id.to_owned(), text: text.to_string(), expected }).await
    }

    /// Takes the policy that the Store has in force, so that the first job is judged by it. What is in force.
    pub async fn load_policy(&self) -> Result<Option<Active>, ApiError> {
        self.inner.policies_once().await?;
        self.active_policy().await
    }

    pub async fn active_policy(&self) -> Result<Option<Active>, ApiError> {
        Ok(self.inner.ports.store.active(SnapshotKind::Policy).await?)
    }

    pub async fn policy_snapshots(&self) -> Result<Vec<SnapshotRow>, ApiError> {
        Ok(self.inner.ports.store.snapshots(SnapshotKind::Policy, SNAPSHOTS_MAX).await?)
    }

    pub async fn policy_text(&self, id: &str) -> Result<Arc<str>, ApiError> {
        let text = self.inner.ports.store.snapshot(SnapshotKind::Policy, id).await?;
        text.ok_or_else(|| {
            ApiError::invalid("snapshot", format_args!("there is no policy snapshot {id:?}; list them first"))
        })
    }

    fn entry(&self, caller: &Caller, snapshot: &Arc<str>, file: &str) -> AuditEntry {
        AuditEntry {
            at: self.inner.ports.clock.now(),
            tenant: caller.tenant.clone(),
            actor: caller.actor.clone(),
            action: Action::PolicyActivated,
            subject: snapshot.clone(),
            detail: Json::trusted(serde_json::json!({ "file": file }).to_string()),
        }
    }
}

/// Every error of the text, each with its place.
pub(super) fn load(file: &str, text: &str) -> Result<Policy, ApiError> {
    let field = |error: lockgate_core::policy::PolicyError| FieldError::new("policy", error);
    Policy::load(file, text).map_err(|errors| ApiError::Invalid(errors.into_iter().map(field).collect()))
}

fn outdated(in_force: u64) -> ApiError {
    ApiError::Outdated(format!("policy version {in_force} is in force now; look at it before you replace it"))
}

impl Inner {
    async fn put_in_force(&self, activation: Activation) -> Result<Activated, ApiError> {
        let (id, text) = (activation.id.clone(), activation.text.clone());
        // From this commit on, no dispatch under another policy is committed.
        let version = match self.ports.store.activate(activation).await? {
            Ok(version) => version,
            Err(newer) => return Err(outdated(newer.in_force)),
        };
        self.adopt(&id, &text);
        let recalled = self.recall(&id).await?;
        self.wake.dispatch.notify_one();
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
