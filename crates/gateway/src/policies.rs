//! Policies as both doors show them.

use std::sync::Arc;

use lockgate_core::ids::ActorId;
use lockgate_core::time::Timestamp;
use lockgate_core::verdict::BUILTIN_ALLOW;
use lockgate_engine::{ApiError, Engine};
use lockgate_ports::{Active, SnapshotRow};
use lockgate_proto::v1;

/// What a policy is called in errors when the client names no file.
pub(crate) const FILE_DEFAULT: &str = "policy.yaml";

/// One policy: that in force, or one that was.
pub(crate) struct Known {
    pub(crate) snapshot: Arc<str>,
    pub(crate) in_force: bool,
    /// None for the built-in one, and where only the activation is asked for.
    pub(crate) text: Option<Arc<str>>,
    /// None for the built-in one, which nobody activated.
    pub(crate) activation: Option<Activation>,
}

/// The latest time a policy was put in force.
pub(crate) struct Activation {
    pub(crate) version: u64,
    pub(crate) actor: ActorId,
    pub(crate) at: Timestamp,
}

/// The policy that decides now.
pub(crate) async fn in_force(engine: &Engine) -> Result<Known, ApiError> {
    Ok(engine.active_policy().await?.map_or_else(builtin, Known::from))
}

/// Policies that are or were in force, the latest activation first, without their texts.
pub(crate) async fn all(engine: &Engine) -> Result<Vec<Known>, ApiError> {
    let Some(active) = engine.active_policy().await? else { return Ok(vec![builtin()]) };
    let known = |row: SnapshotRow| Known { in_force: row.id == active.id, ..Known::from(row) };
    Ok(engine.policy_snapshots().await?.into_iter().map(known).collect())
}

/// One policy that was once put in force, with its text.
pub(crate) async fn snapshot(engine: &Engine, id: &str) -> Result<Known, ApiError> {
    let text = engine.policy_text(id).await?;
    let known = all(engine).await?.into_iter().find(|known| &*known.snapshot == id);
    let unlisted = || Known { snapshot: id.into(), in_force: false, text: None, activation: None };
    Ok(Known { text: Some(text), ..known.unwrap_or_else(unlisted) })
}

fn builtin() -> Known {
    Known { snapshot: BUILTIN_ALLOW.into(), in_force: true, text: None, activation: None }
}

impl From<Active> for Known {
    fn from(active: Active) -> Self {
        let activation = Activation { version: active.version, actor: active.actor, at: active.at };
        Self { snapshot: active.id, in_force: true, text: Some(active.text), activation: Some(activation) }
    }
}

impl From<SnapshotRow> for Known {
    fn from(row: SnapshotRow) -> Self {
        let activation = Activation { version: row.version, actor: row.actor, at: row.at };
        Self { snapshot: row.id, in_force: false, text: None, activation: Some(activation) }
    }
}

impl From<Known> for v1::Policy {
    fn from(known: Known) -> Self {
        let activation = known.activation.as_ref();
        Self {
            snapshot: known.snapshot.to_string(),
            version: activation.map_or(0, |activation| activation.version),
            text: known.text.as_deref().unwrap_or_default().to_owned(),
            actor: activation.map(|activation| activation.actor.to_string()).unwrap_or_default(),
            activated_at_ms: activation.map(|activation| activation.at.as_millis()),
            in_force: known.in_force,
        }
    }
}
