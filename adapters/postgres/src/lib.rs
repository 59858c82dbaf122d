//! The Store on PostgreSQL, for any number of processes.
//!
//! A few writing tasks, each with its own connection, gather the changes of one process: a group is everything that arrived
//! while the previous transaction ran, and becomes a handful of statements over arrays, sent together. Every other write is
//! one statement or one short transaction. Reads have connections of their own.
//!
//! Only features that CockroachDB shares are used: no advisory locks, no notifications, no triggers. Where a lock is needed,
//! a row is locked, and a transaction that the server asks to repeat is repeated.

mod address;
mod conn;
mod counters;
mod encoded_change;
mod encoded_run_step;
mod error;
mod examine;
mod options;
mod pool;
mod reads;
mod retry;
mod row;
mod schema;
mod store;
mod wire;
mod writer;
mod writes;

pub use counters::StoreCounters;
pub use error::UnusableDatabase;
pub use examine::examine;
pub use options::{ConnectOptions, Dialect, Isolation, StoreTime};
pub use schema::migrate;
pub use store::PostgresStore;
pub use wire::WireSecurity;
