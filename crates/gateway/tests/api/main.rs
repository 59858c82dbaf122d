//! The gateway through real sockets, over a real engine on the memory ports.

mod access;
mod access_matrix;
mod approvals;
mod audit;
mod bad_input;
mod dags;
mod dashboard;
mod dead_letters;
mod doors;
mod events;
mod fuzz;
mod health;
mod idempotency;
mod jobs;
mod kernel;
mod outputs;
mod policy;
mod pools;
mod quotas;
mod reasons;
mod sagas;
mod scaler;
mod schedules;
mod support;
mod tls;
mod workers;
