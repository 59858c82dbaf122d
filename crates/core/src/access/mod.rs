//! Access control: roles, the permission that each call needs, and the matrix between them.

mod credential;
mod key;
mod permission;

#[cfg(test)]
mod tests;

pub use credential::{Credential, CredentialId, CredentialKind, Grant, Identity, Reach, Role};
pub use key::{ApiKey, DigestKey, KeyError};
pub use permission::Permission;
