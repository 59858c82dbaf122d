//! Roles, grants, and the credentials that carry them.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Permission;
use crate::ids::{ActorId, PoolName, TenantId};
use crate::request::Caller;
use crate::time::Timestamp;

/// A role: what its holder is trusted with. Roles add up. No role contains another; the matrix in `Permission` lists every
/// right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads jobs, runs and queues.
    Viewer,
    /// Submits work, and reads and cancels that of its own tenant.
    Submitter,
    /// Answers the approvals that policy requires.
    Approver,
    /// Keeps jobs, pools and runs going.
    Operator,
    /// Changes policy, configuration and credentials.
    Admin,
    /// Runs jobs.
    Worker,
    /// Another installation's scheduler, which has its jobs judged here.
    Scheduler,
}

impl Role {
    pub const ALL: [Self; 7] =
        [Self::Viewer, Self::Submitter, Self::Approver, Self::Operator, Self::Admin, Self::Worker, Self::Scheduler];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Submitter => "submitter",
            Self::Approver => "approver",
            Self::Operator => "operator",
            Self::Admin => "admin",
            Self::Worker => "worker",
            Self::Scheduler => "scheduler",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is not the name of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be viewer, submitter, approver, operator, admin, worker or scheduler")]
pub struct NoSuchRole;

impl FromStr for Role {
    type Err = NoSuchRole;

    fn from_str(text: &str) -> Result<Self, NoSuchRole> {
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or(NoSuchRole)
    }
}

/// The tenants that a grant applies to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    Tenant(TenantId),
    /// Every tenant; each call names one.
    Everyone,
}

/// Roles, and the tenants and pools for which they are held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub reach: Reach,
    pub roles: BTreeSet<Role>,
    /// Pools that a worker may belong to; all if none is named.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub pools: BTreeSet<PoolName>,
    /// Whether payloads and results may be read, and not only that they exist.
    #[serde(default)]
    pub payloads: bool,
}

impl Grant {
    pub fn allows(&self, permission: Permission) -> bool {
        self.roles.iter().any(|role| permission.is_given_to(*role))
            && (permission != Permission::SeePayloads || self.payloads)
    }

    /// Whether the grant applies to the tenant.
    pub fn reaches(&self, tenant: &TenantId) -> bool {
        match &self.reach {
            Reach::Tenant(own) => own == tenant,
            Reach::Everyone => true,
        }
    }

    /// Whether the holder of this grant may give `other` to a new credential: no holder can create one with more rights than
    /// their own.
    pub fn covers(&self, other: &Self) -> bool {
        let reach = match &other.reach {
            Reach::Tenant(tenant) => self.reaches(tenant),
            Reach::Everyone => self.reach == Reach::Everyone,
        };
        // A worker receives payloads, even if its grant does not allow reading them through the API.
        let sees = other.payloads || other.roles.contains(&Role::Worker);
        reach && self.allows(Permission::ManageCredentials) && (self.payloads || !sees)
    }

    /// The invalid field and what is wrong with it, if the grant is invalid.
    pub fn fault(&self) -> Option<(&'static str, &'static str)> {
        if self.roles.is_empty() {
            return Some(("roles", "must name at least one role"));
        }
        let machine = self.roles.iter().any(|role| matches!(role, Role::Worker | Role::Scheduler));
        if machine && (self.roles.len() > 1 || self.reach != Reach::Everyone) {
            let text =
                "a worker or scheduler serves every tenant and does nothing else: give it no other role and no tenant";
            return Some(("roles", text));
        }
        let works = self.roles.contains(&Role::Worker);
        (!works && !self.pools.is_empty()).then_some(("pools", "bind workers only"))
    }

    pub fn holds_pool(&self, pool: &PoolName) -> bool {
        self.pools.is_empty() || self.pools.contains(pool)
    }
}

/// The id of a credential: part of the key itself, or the subject of a certificate. Not secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CredentialId(pub Arc<str>);

impl CredentialId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CredentialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for CredentialId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CredentialKind {
    /// The keyed digest of the secret; the secret itself is not stored.
    Key { digest: [u8; 32] },
    /// The id is the subject of a certificate that the listener has verified.
    Certificate,
}

/// A stored credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credential {
    pub id: CredentialId,
    pub kind: CredentialKind,
    /// The actor that every record of the credential's calls names.
    pub actor: ActorId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor_type: Option<Arc<str>>,
    pub grant: Grant,
    pub created_at: Timestamp,
    pub created_by: ActorId,
    /// When the credential ends, because it expired, was revoked or was replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Timestamp>,
}

impl Credential {
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.ends_at.is_none_or(|end| now < end)
    }

    pub fn identity(&self) -> Identity {
        let Self { actor, actor_type, grant, id, .. } = self.clone();
        Identity { actor, actor_type, grant, via: id, source: None }
    }
}

/// An authenticated caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub actor: ActorId,
    pub actor_type: Option<Arc<str>>,
    pub grant: Grant,
    /// The credential of this call.
    pub via: CredentialId,
    /// The address of the connection.
    pub source: Option<IpAddr>,
}

impl Identity {
    /// The identity as a caller on behalf of a tenant: the tenant asked for if the grant applies to it, otherwise None.
    pub fn caller(&self, asked: Option<&TenantId>) -> Option<Caller> {
        let tenant = match (&self.grant.reach, asked) {
            (Reach::Tenant(own), None) => own.clone(),
            (Reach::Everyone, None) => TenantId::from("default"),
            (_, Some(asked)) => Some(asked).filter(|asked| self.grant.reaches(asked))?.clone(),
        };
        Some(Caller {
            tenant,
            tenant_named: true,
            actor: self.actor.clone(),
            actor_type: self.actor_type.clone(),
            verified: true,
            sees_payloads: self.grant.allows(Permission::SeePayloads),
            sees_everyone: self.grant.reach == Reach::Everyone,
            trace: None,
            source: self.source,
        })
    }
}
