//! The Store: jobs, runs, schedules, sessions, leases, configuration, credentials, audit, tenants.
//!
//! The Store takes decisions, not columns. One [`JobStore::commit`] call writes the next state, events, dead letter and
//! outbox of every item atomically; an item whose evidence no longer holds fails alone.

mod audit;
mod credentials;
mod error;
mod jobs;
mod keep;
mod leases;
mod parts;
mod places;
mod runs;
mod schedules;
mod sessions;
mod snapshots;
mod tenants;
mod timelines;
mod tries;
mod unreadable;
mod upkeep;

pub use audit::AuditStore;
pub use credentials::{CredentialStore, GoesOn};
pub use error::{ChangeError, DuplicateJob, StoreError};
pub use jobs::{
    ChildJob, ChildQuery, Cursor, DeadLetterQuery, EventPage, JobChange, JobDetail, JobQuery, JobStore, KeptLine, Kin,
    Listing, LogLine, OutboxEntry, has_labels,
};
pub use keep::{CLOSED_LIFE, KEY_LIFE, LOG_LINES_MAX};
pub use leases::{LeaseRow, Leases};
pub use parts::in_parts;
pub use places::{next_place, places};
pub use runs::{DagRow, MemoKey, NewDag, NewsRow, RunChange, RunKey, RunNews, RunQuery, RunRefusal, RunStore};
pub use schedules::{ScheduleChange, ScheduleStore, SlotQuery, TurnConflict};
pub use sessions::{AttachedSession, EdgeRow, LEASE_AHEAD_MAX, SessionRow, Sessions, Unattached};
pub use snapshots::{Activation, Active, Outdated, SnapshotKind, SnapshotRow, Snapshots};
pub use tenants::{Erased, TenantStore, Usage};
pub use timelines::Timelines;
pub use tries::Tries;
pub use unreadable::{Met, Misread, Unreadable};
pub use upkeep::{OutboxBacklog, OutboxRow, Pinned, Totals, Upkeep};

/// Everything that the engine needs from the Store.
pub trait Store:
    JobStore
    + RunStore
    + ScheduleStore
    + Sessions
    + Leases
    + Snapshots
    + CredentialStore
    + AuditStore
    + TenantStore
    + Timelines
    + Tries
    + Upkeep
{
}

impl<T> Store for T where
    T: JobStore
        + RunStore
        + ScheduleStore
        + Sessions
        + Leases
        + Snapshots
        + CredentialStore
        + AuditStore
        + TenantStore
        + Timelines
        + Tries
        + Upkeep
        + ?Sized
{
}
