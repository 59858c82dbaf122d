//! Schedules, credentials and tenants on the Store as one process sees it.

use std::sync::Arc;

use async_trait::async_trait;
use lockgate_core::access::{Credential, CredentialId};
use lockgate_core::audit::AuditEntry;
use lockgate_core::ids::TenantId;
use lockgate_core::schedule::{Schedule, Slot};
use lockgate_core::time::Timestamp;
use lockgate_ports::store::GoesOn;
use lockgate_ports::{
    CredentialStore, Erased, Listing, ScheduleChange, ScheduleStore, SlotQuery, StoreError, TenantStore, TurnConflict, Usage,
};

use crate::store::FaultyStore;

#[async_trait]
impl ScheduleStore for FaultyStore {
    async fn turn(&self, changes: Vec<ScheduleChange>) -> Result<Vec<Result<(), TurnConflict>>, StoreError> {
        self.before().await?;
        if self.is_late(20) {
            let witness = self.witness.clone();
            return Err(self.land_late(async move { witness.turn(changes).await }));
        }
        let outcome = self.witness.turn(changes).await;
        self.after().await?;
        outcome
    }

    async fn load_schedules(&self, keys: &[(TenantId, Arc<str>)]) -> Result<Vec<Option<Schedule>>, StoreError> {
        self.before().await?;
        let schedules = self.disk.load_schedules(keys).await;
        self.arrive_late().await;
        schedules
    }

    async fn list_schedules(
        &self,
        tenant: &TenantId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Schedule>, StoreError> {
        self.before().await?;
        self.disk.list_schedules(tenant, after, limit).await
    }

    async fn due_schedules(&self, limit: usize) -> Result<Vec<Schedule>, StoreError> {
        self.before().await?;
        let schedules = self.disk.due_schedules(limit).await;
        self.arrive_late().await;
        schedules.map(|schedules| self.planted.due(schedules))
    }

    async fn next_schedule(&self) -> Result<(Option<Timestamp>, Timestamp), StoreError> {
        self.before().await?;
        self.disk.next_schedule().await
    }

    async fn list_slots(&self, query: SlotQuery) -> Result<Listing<Slot>, StoreError> {
        self.before().await?;
        self.disk.list_slots(query).await
    }
}

#[async_trait]
impl CredentialStore for FaultyStore {
    async fn add_credential(&self, credential: Credential, audit: AuditEntry) -> Result<bool, StoreError> {
        self.before().await?;
        let added = self.disk.add_credential(credential, audit).await;
        self.after().await?;
        added
    }

    async fn credential(&self, id: &CredentialId) -> Result<Option<Credential>, StoreError> {
        self.before().await?;
        self.disk.credential(id).await
    }

    async fn credentials(&self, after: Option<&CredentialId>, limit: usize) -> Result<Vec<Credential>, StoreError> {
        self.before().await?;
        self.disk.credentials(after, limit).await
    }

    async fn end_credential(
        &self,
        id: &CredentialId,
        at: Timestamp,
        given: Option<GoesOn>,
        audit: AuditEntry,
    ) -> Result<Option<Credential>, StoreError> {
        self.before().await?;
        let ended = self.disk.end_credential(id, at, given, audit).await;
        self.after().await?;
        ended
    }
}

#[async_trait]
impl TenantStore for FaultyStore {
    async fn usage(&self, tenants: &[TenantId]) -> Result<Vec<Usage>, StoreError> {
        self.before().await?;
        self.disk.usage(tenants).await
    }

    async fn tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<(TenantId, Usage)>, StoreError> {
        self.before().await?;
        self.disk.tenants(after, limit).await
    }

    async fn erase(&self, tenant: &TenantId, limit: usize, audit: &AuditEntry) -> Result<Erased, StoreError> {
        self.before().await?;
        let erased = self.disk.erase(tenant, limit, audit).await;
        self.after().await?;
        erased
    }
}
