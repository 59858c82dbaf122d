//! The ports of Lockgate: traits for everything that the engine needs from outside, named by capability.
//!
//! Every port takes batches, is object-safe and uses only types of `core`: no driver type, SQL text or key format appears in
//! a signature. Adapters implement the ports; `lockgate-conformance` has the tests that every adapter must pass.

pub mod bus;
pub mod checkup;
pub mod clock;
pub mod counters;
pub mod entropy;
pub mod kernel;
pub mod lanes;
pub mod outlet;
pub mod registry;
pub mod spans;
pub mod store;
pub mod tokens;

pub use bus::{Bell, Bus, Ear, Overheard};
pub use clock::{Clock, ClockState, GuardedClock, Steady};
pub use counters::{BreakerAnswer, BreakerStanding, CallOutcome, Counters, CountersAway, VelocityAsk, Visit};
pub use entropy::{Entropy, Mint};
pub use kernel::{
    BreakerMove, BreakerView, Elsewhere, INPUT_BREAKER, Kernel, OUTPUT_BREAKER, OutputContent, OutputMeta, Sharing,
};
pub use lanes::{
    Adopted, Claim, ClaimRequest, Claimed, Condition, Demand, Hold, LaneDepth, LaneLayout, Lanes, LanesAway, LimitView,
    Refill, RefillRequest, Seat, Settlement, TenantShare,
};
pub use outlet::{Delivered, Outlet};
pub use registry::{LEAVING_MAX, SEEN_LIFE, Sighting, Sightings, SnapshotWorker, WorkersSnapshot};
pub use spans::Spans;
pub use store::{
    Activation, Active, AttachedSession, AuditStore, ChangeError, ChildJob, ChildQuery, CredentialStore, Cursor, DagRow,
    DeadLetterQuery, DuplicateJob, EdgeRow, Erased, EventPage, JobChange, JobDetail, JobQuery, JobStore, KeptLine, Kin,
    LeaseRow, Leases, Listing, LogLine, MemoKey, Met, Misread, NewDag, NewsRow, OutboxBacklog, OutboxEntry, OutboxRow,
    Outdated, Pinned, RunChange, RunKey, RunNews, RunQuery, RunRefusal, RunStore, ScheduleChange, ScheduleStore, SessionRow,
    Sessions, SlotQuery, SnapshotKind, SnapshotRow, Snapshots, Store, StoreError, TenantStore, Timelines, Totals, Tries,
    TurnConflict, Unattached, Unreadable, Upkeep, Usage, has_labels, in_parts,
};
pub use tokens::{TokenError, Tokens};
