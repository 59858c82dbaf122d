//! Credentials on the wire, for both doors.

use std::time::Duration;

use lockgate_core::access::{Credential, CredentialKind, Grant, Reach, Role};
use lockgate_core::ids::PoolName;
use lockgate_core::request::FieldError;
use lockgate_core::time::Timestamp;
use lockgate_engine::{ApiError, NewCredential};
use lockgate_proto::v1;

use crate::ServiceContext;
use crate::auth::{AccessMode, Entrance};

/// What a client asks for, before it is checked.
pub(crate) struct Wanted {
    pub(crate) actor: String,
    pub(crate) actor_type: Option<String>,
    pub(crate) roles: Vec<String>,
    /// Absent for everybody.
    pub(crate) tenant: Option<String>,
    pub(crate) pools: Vec<String>,
    pub(crate) payloads: bool,
    pub(crate) lasts_ms: Option<u64>,
}

impl Wanted {
    pub(crate) fn read(self) -> Result<NewCredential, ApiError> {
        let mut errors = Vec::new();
        let roles = self.roles.iter().filter_map(|role| {
            role.parse::<Role>()
                .map_err(|error| errors.push(FieldError::new("roles", format_args!("{role:?} {error}"))))
                .ok()
        });
        let roles = roles.collect();
        if self.lasts_ms == Some(0) {
            errors.push(FieldError::new("lasts_ms", "must be at least 1"));
        }
        if !errors.is_empty() {
            return Err(ApiError::Invalid(errors));
        }
        let grant = Grant {
            reach: self.tenant.map_or(Reach::Everyone, |tenant| Reach::Tenant(tenant.into())),
            roles,
            pools: self.pools.into_iter().map(PoolName::from).collect(),
            payloads: self.payloads,
        };
        let lasts = self.lasts_ms.map(Duration::from_millis);
        Ok(NewCredential { actor: self.actor, actor_type: self.actor_type, grant, lasts })
    }
}

/// What credentials are checked against, if clients are authenticated.
pub(crate) fn entrance(shared: &ServiceContext) -> Result<&Entrance, ApiError> {
    match &shared.settings.access {
        AccessMode::Closed(entrance) => Ok(&**entrance),
        AccessMode::Open => {
            let text = "this server asks nobody for a credential, so there are none to manage; start it with --auth";
            Err(ApiError::NotConfigured(text.to_owned()))
        }
    }
}

pub(crate) fn kind(credential: &Credential) -> &'static str {
    match credential.kind {
        CredentialKind::Key { .. } => "key",
        CredentialKind::Certificate => "certificate",
    }
}

pub(crate) fn credential_to_wire(credential: &Credential, now: Timestamp) -> v1::Credential {
    v1::Credential {
        id: credential.id.to_string(),
        kind: kind(credential).to_owned(),
        actor: credential.actor.to_string(),
        actor_type: credential.actor_type.as_deref().unwrap_or_default().to_owned(),
        grant: Some(grant_to_wire(&credential.grant)),
        created_at_ms: credential.created_at.as_millis(),
        created_by: credential.created_by.to_string(),
        ends_at_ms: credential.ends_at.map(Timestamp::as_millis),
        ended: !credential.is_valid(now),
    }
}

pub(crate) fn grant_to_wire(grant: &Grant) -> v1::Grant {
    v1::Grant {
        roles: grant.roles.iter().map(ToString::to_string).collect(),
        tenant: match &grant.reach {
            Reach::Tenant(tenant) => tenant.to_string(),
            Reach::Everyone => String::new(),
        },
        pools: grant.pools.iter().map(ToString::to_string).collect(),
        payloads: grant.payloads,
    }
}
