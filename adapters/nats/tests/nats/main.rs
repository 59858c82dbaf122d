//! Everything against a real server: one binary, because linking costs more than running.

mod bus_conformance;
mod bus_faults;
mod common;
mod ingress;
mod ingress_faults;
mod relay;
mod tls;
mod worker_subjects;
