//! What is in force, the audit trail and circuit breakers, as the REST contract has them.

use lockgate_proto::v1;
use serde::Serialize;

use super::convert::{document, present, time};
use super::{Json, Time};

#[derive(Debug, Serialize)]
pub(crate) struct Policies {
    pub(crate) policies: Vec<Config>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Configs {
    pub(crate) configs: Vec<Config>,
}

/// A policy, pools or timeouts that are or were in force.
#[derive(Debug, Serialize)]
pub(crate) struct Config {
    pub(crate) snapshot: String,
    pub(crate) version: u64,
    pub(crate) in_force: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) actor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) activated_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Activated {
    pub(crate) version: u64,
    pub(crate) snapshot: String,
    pub(crate) unchanged: bool,
    /// Only of policies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) recalled: Option<u32>,
}

#[derive(Debug, Serialize)]
pub(crate) struct AuditRows {
    pub(crate) rows: Vec<AuditRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_after: Option<i64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct AuditRow {
    pub(crate) id: i64,
    pub(crate) at: Option<Time>,
    pub(crate) tenant: String,
    pub(crate) actor: String,
    pub(crate) action: String,
    pub(crate) subject: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    pub(crate) detail: Option<Json>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Verified {
    pub(crate) intact: bool,
    pub(crate) blocks: u64,
    pub(crate) rows: u64,
    pub(crate) unsealed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) broken: Option<String>,
    /// Each time acknowledged work was lost and an operator chose to go on without it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) losses: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Breakers {
    pub(crate) breakers: Vec<Breaker>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Breaker {
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) failures: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) open_until: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_error: Option<String>,
    pub(crate) sharing: String,
}

impl From<v1::Policy> for Config {
    fn from(policy: v1::Policy) -> Self {
        Self {
            snapshot: policy.snapshot,
            version: policy.version,
            in_force: policy.in_force,
            actor: present(policy.actor),
            activated_at: policy.activated_at_ms.and_then(time),
            text: present(policy.text),
        }
    }
}

impl From<v1::ListPoliciesResponse> for Policies {
    fn from(response: v1::ListPoliciesResponse) -> Self {
        Self { policies: response.policies.into_iter().map(Config::from).collect() }
    }
}

impl From<v1::Config> for Config {
    fn from(config: v1::Config) -> Self {
        let v1::Config { snapshot, version, text, actor, activated_at_ms, in_force } = config;
        Self::from(v1::Policy { snapshot, version, text, actor, activated_at_ms, in_force })
    }
}

impl From<v1::ListConfigsResponse> for Configs {
    fn from(response: v1::ListConfigsResponse) -> Self {
        Self { configs: response.configs.into_iter().map(Config::from).collect() }
    }
}

impl From<v1::ActivateConfigResponse> for Activated {
    fn from(response: v1::ActivateConfigResponse) -> Self {
        let v1::ActivateConfigResponse { version, snapshot, unchanged } = response;
        Self { version, snapshot, unchanged, recalled: None }
    }
}

impl From<v1::ActivatePolicyResponse> for Activated {
    fn from(response: v1::ActivatePolicyResponse) -> Self {
        let v1::ActivatePolicyResponse { version, snapshot, unchanged, recalled } = response;
        Self { version, snapshot, unchanged, recalled: Some(recalled) }
    }
}

impl From<v1::ListAuditResponse> for AuditRows {
    fn from(response: v1::ListAuditResponse) -> Self {
        Self { rows: response.rows.into_iter().map(AuditRow::from).collect(), next_after: response.next_after }
    }
}

impl From<v1::AuditRow> for AuditRow {
    fn from(row: v1::AuditRow) -> Self {
        Self {
            id: row.id,
            at: time(row.at_ms),
            tenant: row.tenant,
            actor: row.actor,
            action: row.action,
            subject: row.subject,
            source: present(row.source),
            detail: document(&row.detail_json),
        }
    }
}

impl From<v1::VerifyAuditResponse> for Verified {
    fn from(response: v1::VerifyAuditResponse) -> Self {
        let v1::VerifyAuditResponse { blocks, rows, unsealed, broken, losses } = response;
        Self { intact: broken.is_empty(), blocks, rows, unsealed, broken: present(broken), losses }
    }
}

impl From<v1::ListBreakersResponse> for Breakers {
    fn from(response: v1::ListBreakersResponse) -> Self {
        let breaker = |breaker: v1::Breaker| Breaker {
            name: breaker.name,
            state: breaker.state,
            failures: breaker.failures,
            open_until: breaker.open_until_ms.and_then(time),
            last_error: present(breaker.last_error),
            sharing: breaker.sharing,
        };
        Self { breakers: response.breakers.into_iter().map(breaker).collect() }
    }
}
