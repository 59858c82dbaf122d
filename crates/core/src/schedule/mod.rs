//! Schedules: what starts by itself, when, and what becomes of a time that could not be kept.
//!
//! A schedule decides about one nominal time after another and leaves a [`Slot`] for each. The head remembers all that is
//! still to be done, so that a turn is one compare-and-set commit and nobody must own a schedule:
//!
//! 1. A turn decides that a time is due and writes so, with the id of what it starts.
//! 2. The job or the run of that id is begun. Who begins it a second time finds it there.
//! 3. The next turn writes that it was started, or why it could not be.
//!
//! A crash between any two of these is made up for by whoever turns the schedule next.

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

/// Schedules of one file.
pub const SCHEDULES_MAX: usize = 10_000;
/// Times that one backfill may start. More are refused: a typing error in a year would start millions.
pub const BACKFILL_SLOTS_MAX: usize = 100_000;
/// Backfills of one schedule at once, and targets of one backfill at once: the head of a schedule holds them all.
pub const BACKFILLS_MAX: usize = 8;
pub const BACKFILL_CONCURRENCY_MAX: u32 = 100;
