//! Credentials: from core to protobuf, and from there to JSON. Secrets are in none of them but the answer that makes a key.

use lockgate_core::access::{self as core, CredentialKind, Reach};
use lockgate_core::time::Timestamp;
use lockgate_proto::v1;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::name_set::{CredentialKindName, RoleName};
use crate::time::Time;
use crate::{ToWire, present, text};

/// What a credential is good for.
#[derive(Debug, Serialize, ToSchema)]
pub struct Grant {
    #[schema(value_type = Vec<RoleName>)]
    pub roles: Vec<String>,
    /// Whose jobs; absent for everybody's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Pools a worker may belong to; none named is all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<String>,
    /// Payloads and results may be seen.
    pub payloads: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Credential {
    pub id: String,
    /// `key` or `certificate`.
    #[schema(value_type = CredentialKindName)]
    pub kind: String,
    pub actor: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor_type: Option<String>,
    pub grant: Grant,
    pub created_at: Time,
    pub created_by: String,
    /// From then on it is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Time>,
    pub ended: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CredentialList)]
pub struct Credentials {
    pub credentials: Vec<Credential>,
    /// Where the list goes on; absent at its end. A page may be short before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_after: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct MadeKey {
    pub credential: Credential,
    /// Keep it: it is not shown again.
    pub key: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct WhoAmI {
    pub actor: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor_type: Option<String>,
    /// The tenant that this call was made for.
    pub tenant: String,
    /// Absent where no credential is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<Grant>,
    /// The credential that was shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
}

/// A key to be made: its name, what it may do and how long it lasts.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewKey)]
pub struct KeyBody {
    /// Who comes in with it, in every record.
    pub actor: String,
    pub actor_type: Option<String>,
    /// viewer, submitter, approver, operator, admin; or worker or scheduler, alone.
    #[schema(value_type = Vec<RoleName>, min_items = 1)]
    pub roles: Vec<String>,
    /// Whose jobs; absent for everybody's.
    pub tenant: Option<String>,
    /// Pools a worker may belong to; none named is all.
    #[serde(default)]
    pub pools: Vec<String>,
    /// Payloads and results may be seen.
    #[serde(default)]
    pub payloads: bool,
    /// How long it lasts; for ever if absent.
    #[schema(minimum = 1)]
    pub lasts_ms: Option<u64>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewCertificate)]
pub struct CertificateBody {
    /// `uri:` and the first URI name of the certificate, else `dns:` and its first DNS name, else `cn:` and its common name.
    #[schema(max_length = 512, pattern = "^(uri|dns|cn):.")]
    pub subject: String,
    /// What its bearer may do.
    pub credential: KeyBody,
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(as = Rotation)]
pub struct RotateBody {
    /// How long the old key goes on.
    pub overlap_ms: u64,
}

/// A credential as it is at `now`.
pub fn credential_to_wire(credential: &core::Credential, now: Timestamp) -> v1::Credential {
    let kind = match credential.kind {
        CredentialKind::Key { .. } => "key",
        CredentialKind::Certificate => "certificate",
    };
    v1::Credential {
        id: credential.id.to_string(),
        kind: kind.to_owned(),
        actor: credential.actor.to_string(),
        actor_type: text(credential.actor_type.as_deref()),
        grant: Some(credential.grant.to_wire()),
        created_at_ms: credential.created_at.as_millis(),
        created_by: credential.created_by.to_string(),
        ends_at_ms: credential.ends_at.map(Timestamp::as_millis),
        ended: !credential.is_valid(now),
    }
}

impl ToWire for core::Grant {
    type Wire = v1::Grant;

    fn to_wire(&self) -> v1::Grant {
        v1::Grant {
            roles: self.roles.iter().map(ToString::to_string).collect(),
            tenant: match &self.reach {
                Reach::Tenant(tenant) => tenant.to_string(),
                Reach::Everyone => String::new(),
            },
            pools: self.pools.iter().map(ToString::to_string).collect(),
            payloads: self.payloads,
        }
    }
}

impl From<v1::NewCredential> for KeyBody {
    fn from(wire: v1::NewCredential) -> Self {
        let v1::Grant { roles, tenant, pools, payloads } = wire.grant.unwrap_or_default();
        let (actor_type, tenant) = (present(wire.actor_type), present(tenant));
        Self { actor: wire.actor, actor_type, roles, tenant, pools, payloads, lasts_ms: wire.lasts_ms }
    }
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
            created_at: Time::from_millis(wire.created_at_ms),
            created_by: wire.created_by,
            ends_at: wire.ends_at_ms.map(Time::from_millis),
            ended: wire.ended,
        }
    }
}

impl From<v1::ListCredentialsResponse> for Credentials {
    fn from(wire: v1::ListCredentialsResponse) -> Self {
        let credentials = wire.credentials.into_iter().map(Credential::from).collect();
        Self { credentials, next_after: present(wire.next_after) }
    }
}

impl From<v1::CreateKeyResponse> for MadeKey {
    fn from(wire: v1::CreateKeyResponse) -> Self {
        Self { credential: wire.credential.unwrap_or_default().into(), key: wire.key }
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
