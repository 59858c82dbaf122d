//! Schedules and their slots.

use std::sync::Arc;

use async_trait::async_trait;
use lockgate_core::audit::AuditEntry;
use lockgate_core::ids::TenantId;
use lockgate_core::schedule::{Schedule, Slot};
use lockgate_core::time::Timestamp;

use super::{Cursor, Listing, StoreError};

#[async_trait]
pub trait ScheduleStore: Send + Sync {
    /// T-1: commits each change alone, all of it or none of it, and durably before answering; results in the order sent.
    ///
    /// Version 1 inserts a schedule whose name is free. Any other replaces the row with version − 1, or removes it. A fresh
    /// slot whose key is there already, or twice in its change, makes the change a conflict: a time is decided once. Items of
    /// one call may take several turns of one schedule, in sequence. If the Store cannot write one of them, the call is
    /// [`Refused`](StoreError::Refused): whoever made it makes it [in parts](super::in_parts).
    async fn turn(&self, changes: Vec<ScheduleChange>) -> Result<Vec<Result<(), TurnConflict>>, StoreError>;

    /// Schedules by tenant and name, in the order asked.
    async fn load_schedules(&self, keys: &[(TenantId, Arc<str>)]) -> Result<Vec<Option<Schedule>>, StoreError>;

    /// By name, after a name.
    async fn list_schedules(
        &self,
        tenant: &TenantId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Schedule>, StoreError>;

    /// Those whose `wakes_at` was reached by the Store's clock, earliest first, then by tenant and name.
    async fn due_schedules(&self, limit: usize) -> Result<Vec<Schedule>, StoreError>;

    /// When the next schedule wakes, and the Store's own time.
    async fn next_schedule(&self) -> Result<(Option<Timestamp>, Timestamp), StoreError>;

    /// Slots of one schedule, the latest nominal time first, and of one time the one written last. Of a schedule that is gone
    /// too.
    async fn list_slots(&self, query: SlotQuery) -> Result<Listing<Slot>, StoreError>;
}

/// One turn of one schedule.
#[derive(Clone, Debug)]
pub struct ScheduleChange {
    pub schedule: Schedule,
    /// The schedule goes; its slots stay as long as ended jobs do. Those that are still DUE or QUEUED stay for ever unless
    /// this change decides them: nobody will come back to them.
    pub gone: bool,
    /// Slots that are decided for the first time.
    pub fresh: Vec<Slot>,
    /// Slots that were there before; written whole, after the fresh ones.
    pub changed: Vec<Slot>,
    pub audit: Vec<AuditEntry>,
}

/// Another process changed the schedule: load again, decide again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the schedule changed meanwhile")]
pub struct TurnConflict;

#[derive(Clone, Debug)]
pub struct SlotQuery {
    pub tenant: TenantId,
    pub schedule: Arc<str>,
    pub cursor: Option<Cursor>,
    pub limit: usize,
}
