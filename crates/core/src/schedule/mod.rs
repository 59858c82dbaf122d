//! Schedules: start jobs and runs at nominal times, and decide about times that no server kept.
//!
//! A schedule decides one nominal time after another and leaves a [`Slot`] for each. The head of the schedule holds
//! everything still to do, so that a turn is one compare-and-set commit and no process has to own the schedule:
//!
//! 1. A turn decides that a time is due and commits this, with the id of the job or run to start.
//! 2. The job or run of that id is begun. A process that begins it again finds it by its id.
//! 3. The next turn records that it was started, or why it could not be.
//!
//! After a crash between any two steps the next process to turn the schedule continues.

mod keys;
mod load;
mod orders;
mod row;
mod spec;
mod start;
mod target;
mod template;
#[cfg(test)]
mod tests;
mod timing;
mod turn;

pub use load::load;
pub use orders::{BackfillRefused, Unsettled};
pub use row::{Backfill, Schedule, Series, Slot, SlotKey, SlotOutcome, Target};
pub use spec::{
    DagWork, GRACE_MS_DEFAULT, JobWork, MISFIRE_WINDOW_MS_DEFAULT, Misfire, Overlap, QUEUE_MAX, ScheduledWork, Spec,
};
pub use start::{Begin, RunAsk};
pub use timing::{Count, Rhythm, Timetable};
pub use turn::{ScheduleDecision, ScheduleNews};

/// The JSON Schema of schedule files, for editors.
pub const SCHEMA: &str = include_str!("../../schedules.schema.json");

/// The most schedules of one file.
pub const SCHEDULES_MAX: usize = 10_000;
/// The most times that one backfill may start. More are refused, because a typing error in a year would start millions.
pub const BACKFILL_SLOTS_MAX: usize = 100_000;
/// The most backfills of one schedule at once, and targets of one backfill at once: the head of the schedule holds them all.
pub const BACKFILLS_MAX: usize = 8;
pub const BACKFILL_CONCURRENCY_MAX: u32 = 100;
