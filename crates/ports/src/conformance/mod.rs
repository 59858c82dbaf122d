//! One list of cases for every adapter.

pub mod lanes;
pub mod store;
