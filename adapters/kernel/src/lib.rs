//! The Kernel port over gRPC: a safety kernel in another process, behind circuit breakers.

mod address;
mod breakers;
mod guard;
mod in_force;
mod remote;

pub use address::{Address, AddressError, Secret, Tls};
pub use remote::{Options, RemoteKernel};
