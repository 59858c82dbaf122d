//! The Store on SQLite, for one process with its own data folder.
//!
//! One thread owns the only writing connection. It takes the calls that have arrived, runs them in one transaction, syncs
//! once and answers all callers; it never waits for more calls. Reads run on their own threads and connections and see
//! everything committed before the call. A third kind of thread copies the write-ahead log back, so that commits need not.

pub mod backup;
mod checkpoint;
mod commit_mark;
mod connection;
mod continuity;
mod effects;
mod encoded_change;
mod encoded_run_step;
mod error;
mod folder;
mod log_scan;
mod readers;
mod reads;
mod reserve;
mod row;
mod schema;
mod store;
mod writer;

pub use commit_mark::CommitPosition;
pub use continuity::Loss;
pub use effects::SqliteEffects;
pub use error::OpenError;
pub use folder::private_folder;
pub use log_scan::BrokenLog;
pub use store::{FolderOptions, SqliteStore};
