//! The seams of Lockgate: what the engine needs from the world, named by capability.
//!
//! Every port takes batches, is object-safe and speaks only the words of `core`: no driver type, SQL text or key
//! format appears in a signature. [`memory`] is the reference; [`conformance`] is the judge of every adapter.

pub mod bus;
pub mod checkup;
pub mod clock;
pub mod conformance;
pub mod counters;
pub mod entropy;
pub mod kernel;
pub mod lanes;
pub mod memory;
pub mod outlet;
pub mod packed;
pub mod registry;
pub mod spans;
pub mod store;
pub mod tokens;
pub mod turn_sheet;

pub use bus::{Bell, Bus, Ear, Overheard};
pub use clock::{Clock, ClockState, GuardedClock, Steady};
pub use counters::{Asked, CallOutcome, Counters, CountersAway, Grant, Standing, VelocityAsk, Visit};
pub use entropy::{Entropy, Mint};
pub use kernel::{
    BreakerMove, BreakerView, Elsewhere, INPUT_BREAKER, Kernel, OUTPUT_BREAKER, OutputContent, OutputMeta, Sharing,
};
pub use lanes::{
    Adopted, Claim, ClaimRequest, Claimed, Condition, Demand, Hold, Hungry, LaneDepth, Lanes, LanesAway, Layout, LimitView,
    Page, Seat, Settlement, TenantShare,
};
pub use outlet::{Delivered, Outlet};
pub use registry::{LEAVING_MAX, SEEN_LIFE, Sighting, Sightings, SnapshotWorker, WorkersSnapshot};
pub use spans::Spans;
pub use store::{
    Activation, Active, Attached, Backlog, Change, ChangeError, Child, ChildQuery, Credentials, Cursor, DagRow,
    DeadLetterQuery, EdgeRow, Erased, EventPage, JobDetail, JobQuery, Jobs, KeptLine, Kin, LeaseRow, Leases, Listing,
    LogLine, MemoKey, Met, Misread, NewDag, NewsRow, OutboxEntry, OutboxRow, Outdated, Pinned, RunChange, RunKey, RunQuery,
    RunRefusal, Runs, ScheduleChange, Schedules, SessionRow, Sessions, SlotQuery, SnapshotKind, SnapshotRow, Snapshots,
    Store, StoreError, Taken, Tenants, Timelines, Told, Totals, Trail, Tries, TurnConflict, Unattached, Unreadable, Upkeep,
    Usage, has_labels, in_parts,
};
pub use tokens::{TokenError, Tokens};
