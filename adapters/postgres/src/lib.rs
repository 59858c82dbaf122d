//! The Store on PostgreSQL, for any number of processes.
//!
//! Changes of one process are gathered by a few writing tasks, each with a connection of its own: a group is what arrived
//! while the transaction before it ran, and becomes a handful of statements over arrays, sent together. Every other
//! write is one statement or one short transaction. Reads have connections of their own.
//!
//! Only what CockroachDB also speaks is used: no advisory locks, no notifications, no triggers. What needs a lock locks a row,
//! and a transaction that the server wants repeated is repeated.

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
