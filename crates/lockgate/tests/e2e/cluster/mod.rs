//! Several processes on PostgreSQL, Redis and NATS.

mod faults;
mod shared;
mod stage;
