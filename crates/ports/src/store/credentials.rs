//! Stored credentials.

use async_trait::async_trait;
use lockgate_core::access::{Credential, CredentialId};
use lockgate_core::audit::AuditEntry;
use lockgate_core::time::Timestamp;

use super::StoreError;

#[async_trait]
pub trait CredentialStore: Send + Sync {
    /// Stores a new credential, in one commit with its audit row. False if its id is taken: nothing is written.
    async fn add_credential(&self, credential: Credential, audit: AuditEntry) -> Result<bool, StoreError>;

    async fn credential(&self, id: &CredentialId) -> Result<Option<Credential>, StoreError>;

    /// Credentials in the order of their ids, after one.
    async fn credentials(&self, after: Option<&CredentialId>, limit: usize) -> Result<Vec<Credential>, StoreError>;

    /// C-1: ends a credential at a time, or earlier if it ends earlier, in one commit with its audit row. Its end never
    /// moves later again. Returns its present state; None if it does not exist. Ended credentials are kept for ever, because
    /// the audit trail names them.
    ///
    /// C-3: with `given` only while that other credential is valid, which the commit checks: of two credentials that are
    /// ended at once, each with the other as evidence, one stays. If the other is not valid, nothing is written.
    async fn end_credential(
        &self,
        id: &CredentialId,
        at: Timestamp,
        given: Option<GoesOn>,
        audit: AuditEntry,
    ) -> Result<Option<Credential>, StoreError>;
}

/// Evidence: the credential exists and is valid at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoesOn {
    pub id: CredentialId,
    pub at: Timestamp,
}
