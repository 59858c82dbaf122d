//! What every adapter of a port must do: one list of cases for each port, run by the tests of each adapter.

pub mod bus;
pub mod counters;
pub mod lanes;
pub mod store;
