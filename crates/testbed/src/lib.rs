//! Real servers for tests and for a cluster on one machine: PostgreSQL, Redis or Valkey, NATS and Prometheus, each on a free
//! loopback port with its data in a temporary folder. A server ends when its value is dropped, and when the process that
//! started it ends in any other way.
//!
//! Programs are looked for in the folder named by `LOCKGATE_POSTGRES_BIN`, `LOCKGATE_REDIS_BIN`, `LOCKGATE_NATS_BIN` or
//! `LOCKGATE_PROMETHEUS_BIN`, in the workspace's `target/servers/bin`, in `PATH`, and where Debian puts them. One that is missing
//! is an error that says how to get it: no test is skipped because of it.

mod folder;
mod nats;
mod ports;
mod postgres;
mod process;
mod programs;
mod prometheus;
mod redis;
mod server;
mod shared;
mod template;
#[cfg(feature = "tls")]
mod tls;
mod wait;

pub use nats::Nats;
pub use postgres::{Durability, Postgres};
pub use prometheus::{Prometheus, http_get};
pub use redis::Redis;
pub use server::TestServer;
pub use shared::{SHARED_POSTGRES, SharedPostgres};
#[cfg(feature = "tls")]
pub use tls::{CertificatePair, Papers};
pub use wait::wait_until;
