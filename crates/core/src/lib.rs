//! Lockgate's decisions: pure functions over plain data.
//!
//! Nothing in this crate waits, reads a clock, draws a random number or touches a file. Every decision takes the
//! aggregate, an input and an [`Env`](job::Env) and returns a [`Transition`](job::Transition); the engine commits it and then acts.

pub mod access;
pub mod audit;
pub mod clock_guard;
pub mod config;
pub mod dag;
pub mod edge;
pub mod fairness;
mod formula;
mod glob;
pub mod ids;
pub mod job;
pub mod json;
pub mod lane;
pub mod limits;
pub mod output;
pub mod placement;
pub mod policy;
pub mod pools;
pub mod quotas;
pub mod rate;
pub mod request;
pub mod retry;
pub mod scan;
pub mod schedule;
pub mod timeouts;
pub mod trace;
pub mod unknown_name;
pub mod verdict;
pub mod why_reason;
pub mod worker;

pub use lockgate_contract::{breaker, hex, time};
