//! Credentials.

use async_trait::async_trait;
use lockgate_core::access::{Credential, CredentialId};
use lockgate_core::audit::AuditEntry;
use lockgate_core::time::Timestamp;

use super::MemoryStore;
use lockgate_ports::store::{CredentialStore, GoesOn, StoreError};

#[async_trait]
impl CredentialStore for MemoryStore {
    async fn add_credential(&self, credential: Credential, audit: AuditEntry) -> Result<bool, StoreError> {
        let (mut data, _) = self.open();
        let is_free = !data.credentials.contains_key(&credential.id);
        if is_free {
            data.credentials.insert(credential.id.clone(), credential);
            data.keep_audit(vec![audit]);
        }
        Ok(is_free)
    }

    async fn credential(&self, id: &CredentialId) -> Result<Option<Credential>, StoreError> {
        Ok(self.open().0.credentials.get(id).cloned())
    }

    async fn credentials(&self, after: Option<&CredentialId>, limit: usize) -> Result<Vec<Credential>, StoreError> {
        let (data, _) = self.open();
        let later = data.credentials.iter().filter(|(id, _)| after.is_none_or(|after| *id > after));
        Ok(later.take(limit).map(|(_, credential)| credential.clone()).collect())
    }

    async fn end_credential(
        &self,
        id: &CredentialId,
        at: Timestamp,
        given: Option<GoesOn>,
        audit: AuditEntry,
    ) -> Result<Option<Credential>, StoreError> {
        let (mut data, _) = self.open();
        let goes_on = |given: GoesOn| data.credentials.get(&given.id).is_some_and(|other| other.is_valid(given.at));
        if !given.is_none_or(goes_on) {
            return Ok(data.credentials.get(id).cloned());
        }
        let Some(credential) = data.credentials.get_mut(id) else { return Ok(None) };
        // C-1.
        credential.ends_at = Some(credential.ends_at.map_or(at, |end| end.min(at)));
        let ended = credential.clone();
        data.keep_audit(vec![audit]);
        Ok(Some(ended))
    }
}
