//! Turns of schedules: what is due is written, begun, and written again.
//!
//! Nobody owns a schedule. The process that leads turns those whose time has come; whoever changes one takes its turn first.
//! A turn that lost against another is dropped: the schedule is loaded again.

mod awaited;
mod begin;
mod commit;
mod ends;
mod round;

pub(crate) use awaited::{AwaitedTargets, ScheduleKey};
pub(crate) use commit::{DecidedSchedule, Unturned};
