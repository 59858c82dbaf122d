//! The model of the world in tests: a Store in memory that every other Store is compared with, and that fails on request; a
//! clock that tests set; entropy from a seed. Nothing of this is compiled into the product.

mod clock;
mod entropy;
mod store;

pub use clock::ManualClock;
pub use entropy::SeededEntropy;
pub use store::{DispatchFault, HealthAnswer, MemoryBackup, MemoryStore};
