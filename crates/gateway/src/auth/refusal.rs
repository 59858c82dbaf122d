//! The answers to failed authentication.

use std::time::Duration;

use lockgate_core::access::{Grant, Permission};
use lockgate_ports::TokenError;

/// Why a request goes no further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AuthRefusal {
    /// It shows nothing.
    Missing,
    /// What it shows counts for nothing. Whether the id, the secret or the time is wrong is not said.
    Bad,
    /// A token that cannot be believed.
    Token(TokenError),
    /// Failed too often.
    Slow(Duration),
    /// Known, and may not.
    Forbidden(String),
    /// What credentials are checked against is away.
    Unavailable(String),
    /// `allow` names the methods that the path takes.
    NoSuchMethod {
        allow: &'static str,
    },
    NoSuchPath,
}

impl AuthRefusal {
    /// Without the permission, or without reaching everybody.
    pub(super) fn lacking(grant: &Grant, permission: Permission) -> Self {
        let roles: Vec<&str> = grant.roles.iter().map(|role| role.as_str()).collect();
        let who = lockgate_core::access::Role::ALL.into_iter().filter(|role| permission.is_given_to(*role));
        let who: Vec<&str> = who.map(|role| role.as_str()).collect();
        let (has, wants) = (roles.join(", "), who.join(" or "));
        let payloads = if permission == Permission::SeePayloads { " with payloads" } else { "" };
        Self::Forbidden(format!(
            "this needs the role {wants}{payloads}, and the credential has {has}; ask an admin for another one"
        ))
    }

    pub(super) fn too_far() -> Self {
        Self::Forbidden(
            "this concerns every tenant, and the credential is for one only; ask an admin for another one".into(),
        )
    }

    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::Missing | Self::Bad | Self::Token(_) => "unauthenticated",
            Self::Slow(_) => "too_many_failures",
            Self::Forbidden(_) => "permission_denied",
            Self::Unavailable(_) => "unavailable",
            Self::NoSuchMethod { .. } => "method_not_allowed",
            Self::NoSuchPath => "no_such_route",
        }
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Self::Missing => "a credential is missing; send an API key or a token as \"authorization: Bearer …\"".to_owned(),
            Self::Bad => "the credential is unknown, wrong, expired or revoked".to_owned(),
            Self::Token(error) => error.to_string(),
            Self::Slow(_) => "too many failed attempts from this address; wait and try again".to_owned(),
            Self::Forbidden(text) | Self::Unavailable(text) => text.clone(),
            Self::NoSuchMethod { allow } => format!("this path does not take this method, but {allow}"),
            Self::NoSuchPath => "there is nothing at this path".to_owned(),
        }
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Slow(wait) => Some(*wait),
            Self::Unavailable(_) => Some(Duration::from_secs(1)),
            _ => None,
        }
    }
}
