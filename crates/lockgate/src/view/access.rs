//! Credentials.

use lockgate_proto::v1;
use serde::Serialize;

use super::Time;
use super::convert::{present, time};

#[derive(Debug, Serialize)]
pub(crate) struct Grant {
    pub(crate) roles: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tenant: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) pools: Vec<String>,
    pub(crate) payloads: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Credential {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) actor: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) actor_type: Option<String>,
    pub(crate) grant: Grant,
    pub(crate) created_at: Option<Time>,
    pub(crate) created_by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ends_at: Option<Time>,
    pub(crate) ended: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Credentials {
    pub(crate) credentials: Vec<Credential>,
}

#[derive(Serialize)]
pub(crate) struct MadeKey {
    credential: Option<Credential>,
    key: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct WhoAmI {
    pub(crate) actor: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) actor_type: Option<String>,
    pub(crate) tenant: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) grant: Option<Grant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) credential: Option<String>,
}

impl From<v1::Grant> for Grant {
    fn from(wire: v1::Grant) -> Self {
        Self { roles: wire.roles, tenant: present(wire.tenant), pools: wire.pools, payloads: wire.payloads }
    }
}

impl From<v1::Credential> for Credential {
    fn from(wire: v1::Credential) -> Self {
        Self {
            id: wire.id,
            kind: wire.kind,
            actor: wire.actor,
            actor_type: present(wire.actor_type),
            grant: wire.grant.unwrap_or_default().into(),
            created_at: time(wire.created_at_ms),
            created_by: wire.created_by,
            ends_at: wire.ends_at_ms.and_then(time),
            ended: wire.ended,
        }
    }
}

impl From<v1::CreateKeyResponse> for MadeKey {
    fn from(wire: v1::CreateKeyResponse) -> Self {
        Self { credential: wire.credential.map(Credential::from), key: wire.key }
    }
}

impl From<v1::WhoAmIResponse> for WhoAmI {
    fn from(wire: v1::WhoAmIResponse) -> Self {
        Self {
            actor: wire.actor,
            actor_type: present(wire.actor_type),
            tenant: wire.tenant,
            grant: wire.grant.map(Grant::from),
            credential: present(wire.credential),
        }
    }
}
