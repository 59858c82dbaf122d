//! Configuration in force: pools, timeouts and quotas put in force, anything in force looked at.

use std::sync::Arc;

use lockgate_core::audit::{AuditAction, AuditEntry};
use lockgate_core::config::ConfigError;
use lockgate_core::pools::Pools;
use lockgate_core::quotas::Quotas;
use lockgate_core::request::{Caller, FieldError, Json};
use lockgate_core::timeouts::Timeouts;
use lockgate_ports::{Activation, Active, SnapshotKind, SnapshotRow};

use super::{builtin, to_the_end};
use crate::error::ApiError;
use crate::{Engine, Inner};

/// A text on its way in.
#[derive(Clone, Debug)]
pub struct ConfigText {
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
    /// Attempts on their way to a worker that a new policy called back.
    pub recalled: usize,
}

const SNAPSHOTS_MAX: usize = 100;

impl Engine {
    /// Checks pools, timeouts or quotas and puts them in force. Once this has answered, nothing is dispatched by others.
    pub async fn activate_config(
        &self,
        caller: &Caller,
        kind: SnapshotKind,
        new: ConfigText,
    ) -> Result<Activated, ApiError> {
        let snapshot = match kind {
            SnapshotKind::Pools => Pools::load(&new.file, &new.text).map(|pools| pools.snapshot().clone()),
            SnapshotKind::Timeouts => Timeouts::load(&new.file, &new.text).map(|timeouts| timeouts.snapshot().clone()),
            SnapshotKind::Quotas => Quotas::load(&new.file, &new.text).map(|quotas| quotas.snapshot().clone()),
            SnapshotKind::Policy => return self.activate_policy(caller, new).await,
            SnapshotKind::PoolStates => return Err(ApiError::invalid("kind", "is set by pausing and resuming pools")),
        };
        let snapshot = snapshot.map_err(|errors| refused(kind, errors))?;
        let active = self.active_config(kind).await?;
        let in_force = active.as_ref().map_or(0, |active| active.version);
        if new.expected.is_some_and(|expected| expected != in_force) {
            return Err(outdated(kind, in_force));
        }
        if active.is_some_and(|active| active.id == snapshot) {
            self.inner.configs_once().await?;
            return Ok(Activated { version: in_force, snapshot, unchanged: true, recalled: 0 });
        }
        let audit = self.inner.config_entry(caller, kind, &snapshot, &new.file);
        let activation =
            Activation { kind, id: snapshot, text: new.text.into(), actor: caller.actor.clone(), expected: in_force, audit };
        let inner = self.inner.clone();
        to_the_end(async move { inner.put_config_in_force(activation).await }).await?
    }

    /// Puts an earlier text in force again.
    pub async fn roll_back_config(
        &self,
        caller: &Caller,
        kind: SnapshotKind,
        id: &str,
        expected: Option<u64>,
    ) -> Result<Activated, ApiError> {
        let text = self.config_text(kind, id).await?;
        self.activate_config(caller, kind, ConfigText { file: id.to_owned(), text: text.to_string(), expected }).await
    }

    /// Takes the pools and timeouts that the Store has in force, so that the first job is routed by them.
    pub async fn load_config(&self) -> Result<(), ApiError> {
        Ok(self.inner.configs_once().await?)
    }

    pub async fn active_config(&self, kind: SnapshotKind) -> Result<Option<Active>, ApiError> {
        Ok(self.inner.ports.store.active(kind).await?)
    }

    pub async fn config_snapshots(&self, kind: SnapshotKind) -> Result<Vec<SnapshotRow>, ApiError> {
        Ok(self.inner.ports.store.snapshots(kind, SNAPSHOTS_MAX).await?)
    }

    /// An earlier text, or what holds without one.
    pub async fn config_text(&self, kind: SnapshotKind, id: &str) -> Result<Arc<str>, ApiError> {
        if let Some(text) = builtin::text(kind).filter(|_| id == kind.builtin()) {
            return Ok(text.into());
        }
        let text = self.inner.ports.store.snapshot(kind, id).await?;
        text.ok_or_else(|| no_snapshot(kind, id))
    }
}

fn no_snapshot(kind: SnapshotKind, id: &str) -> ApiError {
    let what = match kind {
        SnapshotKind::Policy => "policy snapshot",
        SnapshotKind::Pools => "pools snapshot",
        SnapshotKind::Timeouts => "timeouts snapshot",
        SnapshotKind::PoolStates => "pool_states snapshot",
        SnapshotKind::Quotas => "quotas snapshot",
    };
    let more = format!("; list them first, or ask for {}, which holds without a file", kind.builtin());
    ApiError::NoSuch { what, name: id.to_owned(), more }
}

/// Every error of the text, each with its place.
fn refused(kind: SnapshotKind, errors: Vec<ConfigError>) -> ApiError {
    ApiError::Invalid(errors.into_iter().map(|error| FieldError::new(kind.as_str(), error)).collect())
}

pub(super) fn outdated(kind: SnapshotKind, in_force: u64) -> ApiError {
    let kind = kind.as_str();
    ApiError::Outdated(format!("{kind} version {in_force} is in force now; look at it before you replace it"))
}

impl Inner {
    /// From the commit on, no dispatch by other pools is committed.
    pub(super) async fn put_config_in_force(&self, activation: Activation) -> Result<Activated, ApiError> {
        let (kind, snapshot) = (activation.kind, activation.id.clone());
        let version = match self.ports.store.activate(activation).await? {
            Ok(version) => version,
            Err(newer) => return Err(outdated(kind, newer.in_force)),
        };
        self.configs_once().await?;
        if matches!(kind, SnapshotKind::Pools | SnapshotKind::Quotas) {
            self.tell_of_idle_ceilings();
        }
        Ok(Activated { version, snapshot, unchanged: false, recalled: 0 })
    }

    /// A ceiling for a pool that does not exist holds nothing back. It is no error: files come into force one after another.
    fn tell_of_idle_ceilings(&self) {
        let (quotas, routing) = (self.config.quotas(), self.routing());
        for pool in quotas.ceilings.pools.keys().filter(|pool| !routing.pools.pools().any(|there| there.name == **pool)) {
            tracing::warn!(%pool, "ceilings.pools: there is no such pool; the ceiling holds nothing back");
        }
    }

    pub(super) fn config_entry(&self, caller: &Caller, kind: SnapshotKind, subject: &Arc<str>, file: &str) -> AuditEntry {
        let action = match kind {
            SnapshotKind::Policy => AuditAction::PolicyActivated,
            SnapshotKind::Pools => AuditAction::PoolsActivated,
            SnapshotKind::Timeouts => AuditAction::TimeoutsActivated,
            SnapshotKind::PoolStates => AuditAction::PoolStateChanged,
            SnapshotKind::Quotas => AuditAction::QuotasActivated,
        };
        self.entry(caller, action, subject, &serde_json::json!({ "file": file }))
    }

    pub(crate) fn entry(
        &self,
        caller: &Caller,
        action: AuditAction,
        subject: &Arc<str>,
        detail: &serde_json::Value,
    ) -> AuditEntry {
        AuditEntry {
            at: self.ports.clock.now(),
            tenant: caller.tenant.clone(),
            actor: caller.actor.clone(),
            action,
            subject: subject.clone(),
            detail: Json::trusted(detail.to_string()),
        }
        .seen_from(caller.source)
    }
}
