//! Schedules: applied, looked at, paused, triggered, backfilled, removed.

mod apply;
mod order;
mod read;

pub use apply::{AppliedAs, AppliedSchedule};
pub use order::BackfillSpan;
pub use read::ScheduleView;
