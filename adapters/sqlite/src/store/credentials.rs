//! Implements the Store's calls on credentials.

use async_trait::async_trait;
use lockgate_core::access::{Credential, CredentialId};
use lockgate_core::audit::AuditEntry;
use lockgate_core::time::Timestamp;
use lockgate_ports::StoreError;
use lockgate_ports::store::{CredentialStore, GoesOn};

use super::SqliteStore;
use crate::error::StatementError;
use crate::reads;

#[async_trait]
impl CredentialStore for SqliteStore {
    async fn add_credential(&self, credential: Credential, audit: AuditEntry) -> Result<bool, StoreError> {
        // The end is stored in a column of its own and not in the body, so that ending a credential needs no rewrite of it.
        let body = serde_json::to_string(&Credential { ends_at: None, ..credential.clone() });
        let body = body.map_err(|error| StatementError::from(error).before_commit())?;
        self.writer.run(1, move |tx| tx.add_credential(&credential, &body, &audit)).await
    }

    async fn credential(&self, id: &CredentialId) -> Result<Option<Credential>, StoreError> {
        let id = id.clone();
        self.readers.run(move |conn| reads::credential(conn, &id)).await
    }

    async fn credentials(&self, after: Option<&CredentialId>, limit: usize) -> Result<Vec<Credential>, StoreError> {
        let after = after.cloned();
        self.readers.run(move |conn| reads::credentials(conn, after.as_ref(), limit)).await
    }

    async fn end_credential(
        &self,
        id: &CredentialId,
        at: Timestamp,
        given: Option<GoesOn>,
        audit: AuditEntry,
    ) -> Result<Option<Credential>, StoreError> {
        let id = id.clone();
        self.writer.run(1, move |tx| tx.end_credential(&id, at, given.as_ref(), &audit)).await
    }
}
