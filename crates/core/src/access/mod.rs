//! Who may do what: roles, what each call needs, and the one matrix between them.

mod credential;
mod key;
mod permission;

#[cfg(test)]
mod tests;

pub use credential::{Credential, CredentialId, CredentialKind, Grant, Identity, Reach, Role};
pub use key::{ApiKey, DigestKey, KeyError};
pub use permission::Permission;
