//! The conformance suite: one list of cases per port, run by the tests of every adapter.

pub mod bus;
pub mod counters;
pub mod lanes;
pub mod store;
