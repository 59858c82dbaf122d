//! The Kernel port over gRPC: a safety kernel in another process, behind circuit breakers.

mod active_policies;
mod address;
mod breakers;
mod guard;
mod remote;

pub use address::{AddressError, ChannelTls, KernelAddress, Secret};
pub use remote::{CallOptions, RemoteKernel};
