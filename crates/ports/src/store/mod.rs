//! The truth: jobs, runs, schedules, sessions, leases, configuration, credentials, audit, tenants.
//!
//! The Store takes decisions, not columns. One [`Jobs::commit`] call writes next state, events, dead letter and outbox
//! of every item atomically; an item whose evidence no longer holds fails alone.

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

pub use audit::Trail;
pub use credentials::{Credentials, GoesOn};
pub use error::{ChangeError, StoreError, Taken};
pub use jobs::{
    Change, Child, ChildQuery, Cursor, DeadLetterQuery, EventPage, JobDetail, JobQuery, Jobs, KeptLine, Kin, Listing,
    LogLine, OutboxEntry, has_labels,
};
pub use keep::{CLOSED_LIFE, KEY_LIFE, LOG_LINES_MAX};
pub use leases::{LeaseRow, Leases};
pub use parts::in_parts;
pub use places::{next_place, places};
pub use runs::{DagRow, MemoKey, NewDag, NewsRow, RunChange, RunKey, RunQuery, RunRefusal, Runs, Told};
pub use schedules::{ScheduleChange, Schedules, SlotQuery, TurnConflict};
pub use sessions::{Attached, EdgeRow, SessionRow, Sessions, Unattached};
pub use snapshots::{Activation, Active, Outdated, SnapshotKind, SnapshotRow, Snapshots};
pub use tenants::{Erased, Tenants, Usage};
pub use timelines::Timelines;
pub use tries::Tries;
pub use unreadable::{Met, Misread, Unreadable};
pub use upkeep::{Backlog, OutboxRow, Pinned, Totals, Upkeep};

/// Everything the engine asks of the truth.
pub trait Store:
    Jobs + Runs + Schedules + Sessions + Leases + Snapshots + Credentials + Trail + Tenants + Timelines + Tries + Upkeep
{
}

impl<T> Store for T where
    T: Jobs
        + Runs
        + Schedules
        + Sessions
        + Leases
        + Snapshots
        + Credentials
        + Trail
        + Tenants
        + Timelines
        + Tries
        + Upkeep
        + ?Sized
{
}
