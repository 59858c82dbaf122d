//! One list of cases for every adapter.

pub mod bus;
pub mod counters;
pub mod lanes;
pub mod store;
