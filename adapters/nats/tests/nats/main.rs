//! Everything against a real server: one binary, because linking costs more than running.

mod bus_conformance;
mod bus_faults;
mod common;
mod doors;
mod doors_faults;
mod posts;
mod relay;
mod tls;
