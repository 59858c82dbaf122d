//! The reference adapters.

mod bus;
mod clock;
mod counters;
mod entropy;
mod lanes;
mod outlet;
mod store;

pub use bus::MemoryBus;
pub use clock::ManualClock;
pub use counters::{Buckets, MemoryCounters, OnlyLooking, Windows};
pub use entropy::SeededEntropy;
pub use lanes::{Bounds, MemoryLanes};
pub use outlet::MemoryOutlet;
pub use store::{Dispatches, MemoryBackup, MemoryStore, Mood};
