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
    /// T-1: commits each change on its own, completely or not at all, and durably before answering; results in the order of
    /// `changes`.
    ///
    /// Version 1 inserts a schedule whose name is free. Any other replaces the row with version − 1, or removes it. A fresh
    /// slot whose key exists, or occurs twice in its change, makes the change a conflict: a time is decided once. Items of
    /// one call may take several turns of one schedule, in sequence. If the Store cannot write one of them, the call is
    /// [`Refused`](StoreError::Refused), and the caller repeats it [in parts](super::in_parts).
    async fn turn(&self, changes: Vec<ScheduleChange>) -> Result<Vec<Result<(), TurnConflict>>, StoreError>;

    /// Schedules by tenant and name, in the order of `keys`.
    async fn load_schedules(&self, keys: &[(TenantId, Arc<str>)]) -> Result<Vec<Option<Schedule>>, StoreError>;

    /// Schedules of a tenant by name, after a name.
    async fn list_schedules(
        &self,
        tenant: &TenantId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Schedule>, StoreError>;

    /// Schedules whose `wakes_at` was reached by the Store's clock, earliest first, then by tenant and name.
    async fn due_schedules(&self, limit: usize) -> Result<Vec<Schedule>, StoreError>;

    /// When the next schedule wakes, and the Store's own time.
    async fn next_schedule(&self) -> Result<(Option<Timestamp>, Timestamp), StoreError>;

    /// Slots of one schedule, the latest nominal time first, and within one time the one written last. Also of a deleted
    /// schedule.
    async fn list_slots(&self, query: SlotQuery) -> Result<Listing<Slot>, StoreError>;
}

/// One turn of one schedule.
#[derive(Clone, Debug)]
pub struct ScheduleChange {
    pub schedule: Schedule,
    /// The schedule is deleted; its slots are kept as long as ended jobs. Slots that are still DUE or QUEUED stay for ever
    /// unless this change decides them, because no later turn will.
    pub gone: bool,
    /// Slots that are decided for the first time.
    pub fresh: Vec<Slot>,
    /// Slots that existed before; written completely, after the fresh ones.
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
