//! The reference adapters.

mod bus;
mod clock;
mod entropy;
mod kernel;
mod lanes;
mod store;

pub use bus::MemoryBus;
pub use clock::ManualClock;
pub use entropy::SeededEntropy;
pub use kernel::{BUILTIN_ALLOW, BuiltinKernel};
pub use lanes::{Bounds, MemoryLanes};
pub use store::MemoryStore;
