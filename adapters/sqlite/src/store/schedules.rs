//! Implements the Store's calls on schedules.

use std::sync::Arc;

use async_trait::async_trait;
use lockgate_core::ids::TenantId;
use lockgate_core::schedule::{Schedule, Slot};
use lockgate_core::time::Timestamp;
use lockgate_ports::store::{ScheduleChange, ScheduleStore, SlotQuery, TurnConflict};
use lockgate_ports::{Listing, StoreError};
use lockgate_sql::EncodedScheduleTurn;

use super::SqliteStore;
use crate::error::StatementError;
use crate::reads;

#[async_trait]
impl ScheduleStore for SqliteStore {
    async fn turn(&self, changes: Vec<ScheduleChange>) -> Result<Vec<Result<(), TurnConflict>>, StoreError> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let sheets = changes.into_iter().map(EncodedScheduleTurn::fill).collect::<Result<Vec<EncodedScheduleTurn>, _>>();
        let sheets = Arc::new(sheets.map_err(|error| StatementError::from(error).before_commit())?);
        // The caller keeps a reference, so that it and not the writing thread frees the memory.
        let shared = Arc::clone(&sheets);
        let weight = sheets.iter().map(EncodedScheduleTurn::weight).sum();
        self.writer.run(weight, move |tx| tx.turn(&shared)).await
    }

    async fn load_schedules(&self, keys: &[(TenantId, Arc<str>)]) -> Result<Vec<Option<Schedule>>, StoreError> {
        let keys = keys.to_vec();
        self.readers.run(move |conn| reads::load_schedules(conn, &keys)).await
    }

    async fn list_schedules(
        &self,
        tenant: &TenantId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Schedule>, StoreError> {
        let (tenant, after) = (tenant.clone(), after.map(str::to_owned));
        self.walk(move |conn, unreadable| reads::list_schedules(conn, unreadable, &tenant, after.as_deref(), limit)).await
    }

    async fn due_schedules(&self, limit: usize) -> Result<Vec<Schedule>, StoreError> {
        let now = self.clock.now();
        self.walk(move |conn, unreadable| reads::due_schedules(conn, unreadable, now, limit)).await
    }

    async fn next_schedule(&self) -> Result<(Option<Timestamp>, Timestamp), StoreError> {
        let next = self.readers.run(|conn| reads::next_schedule(conn)).await?;
        Ok((next, self.clock.now()))
    }

    async fn list_slots(&self, query: SlotQuery) -> Result<Listing<Slot>, StoreError> {
        self.walk(move |conn, unreadable| reads::list_slots(conn, unreadable, &query)).await
    }
}
