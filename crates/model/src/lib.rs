//! Models for tests: a Store in memory, which every other Store is compared with and which fails on request; a clock that
//! tests set; entropy from a seed. None of it is compiled into the product.

mod clock;
mod entropy;
mod store;

pub use clock::ManualClock;
pub use entropy::SeededEntropy;
pub use store::{DispatchFault, HealthAnswer, MemoryBackup, MemoryStore};
