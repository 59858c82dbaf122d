//! Who may come in.

use async_trait::async_trait;
use lockgate_core::access::{Credential, CredentialId};
use lockgate_core::audit::AuditEntry;
use lockgate_core::time::Timestamp;

use super::StoreError;

#[async_trait]
pub trait CredentialStore: Send + Sync {
    /// Keeps a new credential, in one commit with its audit row. False when its id is taken: nothing is written.
    async fn add_credential(&self, credential: Credential, audit: AuditEntry) -> Result<bool, StoreError>;

    async fn credential(&self, id: &CredentialId) -> Result<Option<Credential>, StoreError>;

    /// In the order of their ids, after one.
    async fn credentials(&self, after: Option<&CredentialId>, limit: usize) -> Result<Vec<Credential>, StoreError>;

    /// C-1: ends a credential at a time, or earlier if it ends earlier, in one commit with its audit row. It never lives longer
    /// again. As it is now; none if there is no such. Ended ones are kept for ever: the audit trail names them.
    ///
    /// C-3: with `given` only while that other credential goes on, which the same commit makes sure of: of two that are ended at
    /// once, each given the other, one stays. If it does not go on, nothing is written.
    async fn end_credential(
        &self,
        id: &CredentialId,
        at: Timestamp,
        given: Option<GoesOn>,
        audit: AuditEntry,
    ) -> Result<Option<Credential>, StoreError>;
}

/// Evidence: the credential is there and still good at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoesOn {
    pub id: CredentialId,
    pub at: Timestamp,
}
