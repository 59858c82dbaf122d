//! The safety kernel in this process: the policy in force, asked without a round trip.

mod local;
mod scanner;
mod shared;
mod windows;

pub use local::LocalKernel;
