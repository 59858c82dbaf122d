//! What is or was in force, as both doors show it: policies, pools, timeouts.

use std::sync::Arc;

use lockgate_core::ids::ActorId;
use lockgate_core::time::Timestamp;
use lockgate_engine::{ApiError, Engine};
use lockgate_ports::{Active, SnapshotKind, SnapshotRow};

/// What a text is called in errors when the client names no file.
pub(crate) fn file_name(kind: SnapshotKind) -> String {
    format!("{}.yaml", kind.as_str())
}

/// One text: that in force, or one that was.
pub(crate) struct ConfigVersion {
    pub(crate) snapshot: Arc<str>,
    pub(crate) in_force: bool,
    /// None for the built-in one, and where only the activation is asked for.
    pub(crate) text: Option<Arc<str>>,
    /// None for the built-in one, which was never activated.
    pub(crate) activation: Option<LastActivation>,
}

/// The latest time a text was put in force.
pub(crate) struct LastActivation {
    pub(crate) version: u64,
    pub(crate) actor: ActorId,
    pub(crate) at: Timestamp,
}

/// What counts now.
pub(crate) async fn in_force(engine: &Engine, kind: SnapshotKind) -> Result<ConfigVersion, ApiError> {
    Ok(engine.active_config(kind).await?.map_or_else(|| builtin(kind), ConfigVersion::from))
}

/// What is or was in force, the latest activation first, without the texts.
pub(crate) async fn all(engine: &Engine, kind: SnapshotKind) -> Result<Vec<ConfigVersion>, ApiError> {
    let Some(active) = engine.active_config(kind).await? else { return Ok(vec![builtin(kind)]) };
    let known = |row: SnapshotRow| ConfigVersion { in_force: row.id == active.id, ..ConfigVersion::from(row) };
    Ok(engine.config_snapshots(kind).await?.into_iter().map(known).collect())
}

/// One text that was once put in force.
pub(crate) async fn snapshot(engine: &Engine, kind: SnapshotKind, id: &str) -> Result<ConfigVersion, ApiError> {
    let text = engine.config_text(kind, id).await?;
    let known = all(engine, kind).await?.into_iter().find(|known| &*known.snapshot == id);
    let unlisted = || ConfigVersion { snapshot: id.into(), in_force: false, text: None, activation: None };
    Ok(ConfigVersion { text: Some(text), ..known.unwrap_or_else(unlisted) })
}

/// The one a client names; the one in force if it names none.
pub(crate) async fn named(engine: &Engine, kind: SnapshotKind, id: &str) -> Result<ConfigVersion, ApiError> {
    if id.is_empty() { in_force(engine, kind).await } else { snapshot(engine, kind, id).await }
}

fn builtin(kind: SnapshotKind) -> ConfigVersion {
    ConfigVersion { snapshot: kind.builtin().into(), in_force: true, text: None, activation: None }
}

impl ConfigVersion {
    /// 0 for the built-in one.
    pub(crate) fn version(&self) -> u64 {
        self.activation.as_ref().map_or(0, |activation| activation.version)
    }
}

impl From<Active> for ConfigVersion {
    fn from(active: Active) -> Self {
        let activation = LastActivation { version: active.version, actor: active.actor, at: active.at };
        Self { snapshot: active.id, in_force: true, text: Some(active.text), activation: Some(activation) }
    }
}

impl From<SnapshotRow> for ConfigVersion {
    fn from(row: SnapshotRow) -> Self {
        let activation = LastActivation { version: row.version, actor: row.actor, at: row.at };
        Self { snapshot: row.id, in_force: false, text: None, activation: Some(activation) }
    }
}
