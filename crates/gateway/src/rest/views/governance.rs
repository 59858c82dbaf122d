//! What is in force, the audit trail, circuit breakers.

use lockgate_core::audit::AuditRow as CoreRow;
use lockgate_engine::{Activated as EngineActivated, Verified as EngineVerified};
use lockgate_ports::{BreakerView, SnapshotKind};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::names::{BreakerStateName, SharingName};
use super::{Name, Time, document};
use crate::configs::ConfigVersion;

/// A policy, pools or timeouts that are or were in force.
#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Config {
    snapshot: String,
    /// 0 for the built-in one, which nobody activated.
    version: u64,
    in_force: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    activated_at: Option<Time>,
    /// Not in lists; absent for the built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = PolicyList)]
pub(in crate::rest) struct Policies {
    /// The latest activation first.
    policies: Vec<Config>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ConfigList)]
pub(in crate::rest) struct Configs {
    /// The latest activation first.
    configs: Vec<Config>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Activated {
    version: u64,
    snapshot: String,
    /// It was in force already; nothing changed.
    unchanged: bool,
    /// Attempts on their way to a worker that were called back. Only of policies.
    #[serde(skip_serializing_if = "Option::is_none")]
    recalled: Option<usize>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct AuditRows {
    rows: Vec<AuditRow>,
    /// What to send as `after` for the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_after: Option<i64>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct AuditRow {
    id: i64,
    at: Time,
    tenant: String,
    actor: String,
    action: &'static str,
    /// The job, snapshot, pool or worker it happened to.
    subject: String,
    /// Address of whoever acted, as the server saw it: behind a proxy, the proxy's. Absent for what the platform did itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[schema(value_type = Option<serde_json::Value>)]
    detail: Option<Box<RawValue>>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Verified {
    intact: bool,
    /// Blocks and rows that were found untouched.
    blocks: u64,
    rows: u64,
    /// Rows that no block vouches for yet.
    unsealed: u64,
    /// The first broken place, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<String>,
    /// Each time acknowledged work was lost and an operator chose to go on without it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    losses: Vec<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = BreakerList)]
pub(in crate::rest) struct Breakers {
    /// Empty when the safety kernel is in process.
    breakers: Vec<Breaker>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Breaker {
    name: &'static str,
    /// closed, open or half_open
    state: BreakerStateName,
    /// In a row, while closed.
    failures: u32,
    /// When the first probe is let through.
    #[serde(skip_serializing_if = "Option::is_none")]
    open_until: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    /// Whose calls it counts: alone (this process by design), shared (all replicas) or local_fallback (this process until
    /// the shared counters answer again)
    sharing: SharingName,
}

impl From<ConfigVersion> for Config {
    fn from(known: ConfigVersion) -> Self {
        let activation = known.activation.as_ref();
        Self {
            snapshot: known.snapshot.to_string(),
            version: known.version(),
            in_force: known.in_force,
            actor: activation.map(|activation| activation.actor.to_string()),
            activated_at: activation.map(|activation| Time(activation.at)),
            text: known.text.as_ref().map(ToString::to_string),
        }
    }
}

impl From<Vec<ConfigVersion>> for Policies {
    fn from(known: Vec<ConfigVersion>) -> Self {
        Self { policies: known.into_iter().map(Config::from).collect() }
    }
}

impl From<Vec<ConfigVersion>> for Configs {
    fn from(known: Vec<ConfigVersion>) -> Self {
        Self { configs: known.into_iter().map(Config::from).collect() }
    }
}

impl Activated {
    pub(in crate::rest) fn new(kind: SnapshotKind, activated: EngineActivated) -> Self {
        let EngineActivated { version, snapshot, unchanged, recalled } = activated;
        let recalled = (kind == SnapshotKind::Policy).then_some(recalled);
        Self { version, snapshot: snapshot.to_string(), unchanged, recalled }
    }
}

impl AuditRows {
    pub(in crate::rest) fn new(rows: &[CoreRow], next_after: Option<i64>) -> Self {
        Self { rows: rows.iter().map(AuditRow::from).collect(), next_after }
    }
}

impl From<&CoreRow> for AuditRow {
    fn from(row: &CoreRow) -> Self {
        let entry = &row.entry;
        Self {
            id: row.id,
            at: Time(entry.at),
            tenant: entry.tenant.to_string(),
            actor: entry.actor.to_string(),
            action: entry.action.as_str(),
            subject: entry.subject.to_string(),
            source: entry.source(),
            detail: document(&entry.detail),
        }
    }
}

impl From<EngineVerified> for Verified {
    fn from(verified: EngineVerified) -> Self {
        let EngineVerified { blocks, rows, unsealed, broken, losses } = verified;
        let (intact, broken) = (broken.is_none(), broken.map(|broken| broken.to_string()));
        Self { intact, blocks, rows, unsealed, broken, losses }
    }
}

impl From<Vec<BreakerView>> for Breakers {
    fn from(views: Vec<BreakerView>) -> Self {
        let breaker = |view: BreakerView| Breaker {
            name: view.name,
            state: Name(view.state),
            failures: view.failures,
            open_until: view.open_until.map(Time),
            last_error: view.last_error.as_ref().map(ToString::to_string),
            sharing: Name(view.sharing),
        };
        Self { breakers: views.into_iter().map(breaker).collect() }
    }
}
