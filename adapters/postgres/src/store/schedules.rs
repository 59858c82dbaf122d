//! Implements the Store's calls on schedules.

use std::sync::Arc;

use async_trait::async_trait;
use lockgate_core::ids::TenantId;
use lockgate_core::schedule::{Schedule, Slot};
use lockgate_core::time::Timestamp;
use lockgate_ports::store::{ScheduleChange, ScheduleStore, SlotQuery, TurnConflict};
use lockgate_ports::{Listing, StoreError};
use lockgate_sql::EncodedScheduleTurn;

use super::PostgresStore;
use crate::error::StatementError;
use crate::pool::AccessMode;
use crate::{reads, writes};

#[async_trait]
impl ScheduleStore for PostgresStore {
    async fn turn(&self, changes: Vec<ScheduleChange>) -> Result<Vec<Result<(), TurnConflict>>, StoreError> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let sheets = changes.into_iter().map(EncodedScheduleTurn::fill).collect::<Result<Vec<EncodedScheduleTurn>, _>>();
        let sheets = sheets.map_err(|error| StatementError::from(error).before_commit())?;
        ask!(self, Writes, conn => writes::turn(conn, self.begin(), &sheets))
    }

    async fn load_schedules(&self, keys: &[(TenantId, Arc<str>)]) -> Result<Vec<Option<Schedule>>, StoreError> {
        ask!(self, Reads, conn => reads::load_schedules(conn, keys))
    }

    async fn list_schedules(
        &self,
        tenant: &TenantId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Schedule>, StoreError> {
        ask!(self, Reads, conn => reads::list_schedules(conn, &self.unreadable, tenant, after, limit))
    }

    async fn due_schedules(&self, limit: usize) -> Result<Vec<Schedule>, StoreError> {
        ask!(self, Reads, conn => reads::due_schedules(conn, &self.unreadable, self.now(), limit))
    }

    async fn next_schedule(&self) -> Result<(Option<Timestamp>, Timestamp), StoreError> {
        ask!(self, Reads, conn => reads::next_schedule(conn, self.now()))
    }

    async fn list_slots(&self, query: SlotQuery) -> Result<Listing<Slot>, StoreError> {
        ask!(self, Reads, conn => reads::list_slots(conn, &self.unreadable, &query))
    }
}
