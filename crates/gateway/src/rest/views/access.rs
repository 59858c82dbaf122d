//! Credentials as JSON. Secrets are in none of them but the answer that makes a key.

use lockgate_core::access::{self as core, CredentialId, Identity, Reach};
use lockgate_core::request::Caller;
use lockgate_core::time::Timestamp;
use lockgate_engine::MadeKey as EngineMadeKey;
use serde::Serialize;
use utoipa::ToSchema;

use super::Time;
use crate::access::kind;

/// What a credential is good for.
#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Grant {
    roles: Vec<&'static str>,
    /// Whose jobs; absent for everybody's.
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    /// Pools a worker may belong to; none named is all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pools: Vec<String>,
    /// Payloads and results may be seen.
    payloads: bool,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Credential {
    id: String,
    /// `key` or `certificate`.
    kind: &'static str,
    actor: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor_type: Option<String>,
    grant: Grant,
    created_at: Time,
    created_by: String,
    /// From then on it is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    ends_at: Option<Time>,
    ended: bool,
}

#[derive(Serialize, ToSchema)]
#[schema(as = CredentialList)]
pub(in crate::rest) struct Credentials {
    credentials: Vec<Credential>,
    /// Where the list goes on; absent at its end. A page may be short before.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_after: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct MadeKey {
    credential: Credential,
    /// Keep it: it is not shown again.
    key: String,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct WhoAmI {
    actor: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor_type: Option<String>,
    /// The tenant that this call was made for.
    tenant: String,
    /// Absent where nobody is asked for a credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<Grant>,
    /// The credential that was shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    credential: Option<String>,
}

impl From<&core::Grant> for Grant {
    fn from(grant: &core::Grant) -> Self {
        Self {
            roles: grant.roles.iter().map(|role| role.as_str()).collect(),
            tenant: match &grant.reach {
                Reach::Tenant(tenant) => Some(tenant.to_string()),
                Reach::Everyone => None,
            },
            pools: grant.pools.iter().map(ToString::to_string).collect(),
            payloads: grant.payloads,
        }
    }
}

impl Credential {
    pub(in crate::rest) fn new(credential: &core::Credential, now: Timestamp) -> Self {
        Self {
            id: credential.id.to_string(),
            kind: kind(credential),
            actor: credential.actor.to_string(),
            actor_type: credential.actor_type.as_ref().map(ToString::to_string),
            grant: Grant::from(&credential.grant),
            created_at: Time(credential.created_at),
            created_by: credential.created_by.to_string(),
            ends_at: credential.ends_at.map(Time),
            ended: !credential.is_valid(now),
        }
    }
}

impl Credentials {
    pub(in crate::rest) fn new(rows: &[core::Credential], next: Option<&CredentialId>, now: Timestamp) -> Self {
        let credentials = rows.iter().map(|credential| Credential::new(credential, now)).collect();
        Self { credentials, next_after: next.map(ToString::to_string) }
    }
}

impl MadeKey {
    pub(in crate::rest) fn new(made: &EngineMadeKey, now: Timestamp) -> Self {
        Self { credential: Credential::new(&made.credential, now), key: made.key.reveal() }
    }
}

impl WhoAmI {
    pub(in crate::rest) fn new(caller: &Caller, identity: Option<&Identity>) -> Self {
        Self {
            actor: caller.actor.to_string(),
            actor_type: caller.actor_type.as_ref().map(ToString::to_string),
            tenant: caller.tenant.to_string(),
            grant: identity.map(|identity| Grant::from(&identity.grant)),
            credential: identity.map(|identity| identity.via.to_string()),
        }
    }
}
