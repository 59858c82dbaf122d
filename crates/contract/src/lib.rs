//! What clients, workers and servers must agree on besides the messages: names, limits, priorities, loads, traces, and the circuit
//! breaker that all of them use.
//!
//! Everything here is plain data and pure functions. The crate is small on purpose: it is linked into the programs of users.

pub mod breaker;
pub mod hex;
pub mod limits;
mod load;
pub mod names;
mod priority;
pub mod time;
pub mod trace;

pub use load::Load;
pub use priority::{Priority, UnknownPriority};
