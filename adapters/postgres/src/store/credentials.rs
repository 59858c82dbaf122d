//! Implements the Store's calls on credentials.

use async_trait::async_trait;
use lockgate_core::access::{Credential, CredentialId};
use lockgate_core::audit::AuditEntry;
use lockgate_core::time::Timestamp;
use lockgate_ports::StoreError;
use lockgate_ports::store::{CredentialStore, GoesOn};

use super::PostgresStore;
use crate::pool::AccessMode;
use crate::{reads, writes};

#[async_trait]
impl CredentialStore for PostgresStore {
    async fn add_credential(&self, credential: Credential, audit: AuditEntry) -> Result<bool, StoreError> {
        ask!(self, Writes, conn => writes::add_credential(conn, &credential, &audit))
    }

    async fn credential(&self, id: &CredentialId) -> Result<Option<Credential>, StoreError> {
        ask!(self, Reads, conn => reads::credential(conn, id))
    }

    async fn credentials(&self, after: Option<&CredentialId>, limit: usize) -> Result<Vec<Credential>, StoreError> {
        ask!(self, Reads, conn => reads::credentials(conn, after, limit))
    }

    async fn end_credential(
        &self,
        id: &CredentialId,
        at: Timestamp,
        given: Option<GoesOn>,
        audit: AuditEntry,
    ) -> Result<Option<Credential>, StoreError> {
        ask!(self, Writes, conn => writes::end_credential(conn, self.begin(), id, at, given.as_ref(), &audit))
    }
}
