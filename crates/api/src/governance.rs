//! What is in force, the audit trail, circuit breakers.

use lockgate_core::audit as core;
use lockgate_proto::v1;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::name_set::{AuditActionName, BreakerStateName, SharingName};
use crate::time::Time;
use crate::{ToWire, document, json_bytes, present};

/// A policy, pools or timeouts that are or were in force.
#[derive(Debug, Serialize, ToSchema)]
pub struct Config {
    pub snapshot: String,
    /// 0 for the built-in one, which is never activated.
    pub version: u64,
    pub in_force: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activated_at: Option<Time>,
    /// Not in lists; absent for the built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PolicyList)]
pub struct Policies {
    /// The latest activation first.
    pub policies: Vec<Config>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConfigList)]
pub struct Configs {
    /// The latest activation first.
    pub configs: Vec<Config>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Activated {
    pub version: u64,
    pub snapshot: String,
    /// It was in force already; nothing changed.
    pub unchanged: bool,
    /// Attempts on their way to a worker that were called back. Only of policies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recalled: Option<u32>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct AuditRows {
    pub rows: Vec<AuditRow>,
    /// What to send as `after` for the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_after: Option<i64>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct AuditRow {
    pub id: i64,
    pub at: Time,
    pub tenant: String,
    pub actor: String,
    #[schema(value_type = AuditActionName)]
    pub action: String,
    /// The job, snapshot, pool or worker it happened to.
    pub subject: String,
    /// Address of the actor, as the server saw it: behind a proxy, the proxy's. Absent for what the platform did itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[schema(value_type = Option<serde_json::Value>)]
    pub detail: Option<Box<RawValue>>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Verified {
    pub intact: bool,
    /// Blocks and rows that were found untouched.
    pub blocks: u64,
    pub rows: u64,
    /// Rows that no block vouches for yet.
    pub unsealed: u64,
    /// The first broken place, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
    /// Each time acknowledged work was lost and an operator chose to go on without it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BreakerList)]
pub struct Breakers {
    /// Empty when the safety kernel is in process.
    pub breakers: Vec<Breaker>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Breaker {
    pub name: String,
    /// closed, open or half_open
    pub state: BreakerStateName,
    /// In a row, while closed.
    pub failures: u32,
    /// When the first probe is let through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_until: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Whose calls it counts: alone (this process by design), shared (all replicas) or local_fallback (this process until
    /// the shared counters answer again)
    pub sharing: SharingName,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewConfig)]
pub struct ConfigBody {
    /// Named in errors.
    pub file: Option<String>,
    /// The content of the file, YAML.
    pub text: String,
    /// Refused unless this version is in force.
    pub expected_version: Option<u64>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Rollback)]
pub struct RollbackBody {
    pub snapshot: String,
    /// Refused unless this version is in force.
    pub expected_version: Option<u64>,
}

impl From<v1::Policy> for Config {
    fn from(wire: v1::Policy) -> Self {
        Self {
            snapshot: wire.snapshot,
            version: wire.version,
            in_force: wire.in_force,
            actor: present(wire.actor),
            activated_at: wire.activated_at_ms.map(Time::from_millis),
            text: present(wire.text),
        }
    }
}

impl From<v1::Config> for Config {
    fn from(wire: v1::Config) -> Self {
        let v1::Config { snapshot, version, text, actor, activated_at_ms, in_force } = wire;
        Self::from(v1::Policy { snapshot, version, text, actor, activated_at_ms, in_force })
    }
}

impl From<v1::ListPoliciesResponse> for Policies {
    fn from(wire: v1::ListPoliciesResponse) -> Self {
        Self { policies: wire.policies.into_iter().map(Config::from).collect() }
    }
}

impl From<v1::ListConfigsResponse> for Configs {
    fn from(wire: v1::ListConfigsResponse) -> Self {
        Self { configs: wire.configs.into_iter().map(Config::from).collect() }
    }
}

impl From<v1::ActivatePolicyResponse> for Activated {
    fn from(wire: v1::ActivatePolicyResponse) -> Self {
        let v1::ActivatePolicyResponse { version, snapshot, unchanged, recalled } = wire;
        Self { version, snapshot, unchanged, recalled: Some(recalled) }
    }
}

impl From<v1::ActivateConfigResponse> for Activated {
    fn from(wire: v1::ActivateConfigResponse) -> Self {
        let v1::ActivateConfigResponse { version, snapshot, unchanged } = wire;
        Self { version, snapshot, unchanged, recalled: None }
    }
}

impl ToWire for core::AuditRow {
    type Wire = v1::AuditRow;

    fn to_wire(&self) -> v1::AuditRow {
        let entry = &self.entry;
        v1::AuditRow {
            id: self.id,
            at_ms: entry.at.as_millis(),
            tenant: entry.tenant.to_string(),
            actor: entry.actor.to_string(),
            action: entry.action.as_str().to_owned(),
            subject: entry.subject.to_string(),
            detail_json: json_bytes(&entry.detail),
            source: entry.source().unwrap_or_default(),
        }
    }
}

impl From<v1::AuditRow> for AuditRow {
    fn from(wire: v1::AuditRow) -> Self {
        Self {
            id: wire.id,
            at: Time::from_millis(wire.at_ms),
            tenant: wire.tenant,
            actor: wire.actor,
            action: wire.action,
            subject: wire.subject,
            source: present(wire.source),
            detail: document(&wire.detail_json),
        }
    }
}

impl From<v1::ListAuditResponse> for AuditRows {
    fn from(wire: v1::ListAuditResponse) -> Self {
        Self { rows: wire.rows.into_iter().map(AuditRow::from).collect(), next_after: wire.next_after }
    }
}

impl From<v1::VerifyAuditResponse> for Verified {
    fn from(wire: v1::VerifyAuditResponse) -> Self {
        let v1::VerifyAuditResponse { blocks, rows, unsealed, broken, losses } = wire;
        Self { intact: broken.is_empty(), blocks, rows, unsealed, broken: present(broken), losses }
    }
}

impl From<v1::ListBreakersResponse> for Breakers {
    fn from(wire: v1::ListBreakersResponse) -> Self {
        Self { breakers: wire.breakers.into_iter().map(Breaker::from).collect() }
    }
}

impl From<v1::Breaker> for Breaker {
    fn from(wire: v1::Breaker) -> Self {
        Self {
            name: wire.name,
            state: wire.state.into(),
            failures: wire.failures,
            open_until: wire.open_until_ms.map(Time::from_millis),
            last_error: present(wire.last_error),
            sharing: wire.sharing.into(),
        }
    }
}
