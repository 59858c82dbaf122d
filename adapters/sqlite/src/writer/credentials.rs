//! Writes credentials.

use lockgate_core::access::{Credential, CredentialId};
use lockgate_core::audit::AuditEntry;
use lockgate_core::time::Timestamp;
use lockgate_ports::store::GoesOn;
use rusqlite::params;

use super::WriteTx;
use crate::error::StatementError;
use crate::reads;

impl WriteTx<'_> {
    pub(crate) fn add_credential(
        &mut self,
        new: &Credential,
        body: &str,
        audit: &AuditEntry,
    ) -> Result<bool, StatementError> {
        let sql = "INSERT INTO credentials (id, ends_at, body) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
        let columns = params![new.id.as_str(), new.ends_at.map(Timestamp::as_millis), body];
        let added = self.conn.prepare_cached(sql)?.execute(columns)? == 1;
        if added {
            self.keep_audit(std::slice::from_ref(audit))?;
        }
        Ok(added)
    }

    /// C-1, C-3: the end can only move earlier, and the credential `given` as evidence must still be valid when the
    /// statement runs.
    pub(crate) fn end_credential(
        &mut self,
        id: &CredentialId,
        at: Timestamp,
        given: Option<&GoesOn>,
        audit: &AuditEntry,
    ) -> Result<Option<Credential>, StatementError> {
        let sql = include_str!("../../queries/end_credential.sql");
        let (other, good_at) = (given.map(|given| given.id.as_str()), given.map(|given| given.at.as_millis()));
        if self.conn.prepare_cached(sql)?.execute(params![id.as_str(), at.as_millis(), other, good_at])? == 1 {
            self.keep_audit(std::slice::from_ref(audit))?;
        }
        reads::credential(self.conn, id)
    }
}
