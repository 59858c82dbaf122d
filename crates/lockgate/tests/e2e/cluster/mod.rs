//! Several processes on PostgreSQL, Redis and NATS.

mod faults;
mod health;
mod letters;
mod shared;
mod stage;
mod tls;
