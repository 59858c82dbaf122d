//! The ports of one process, in memory: its doorbells, its lanes, its counters, and a sink for tests.

mod bus;
mod counters;
mod lanes;
mod outlet;

pub use bus::MemoryBus;
pub use counters::MemoryCounters;
pub use lanes::{MemoryLanes, WindowBounds};
pub use outlet::MemoryOutlet;
