//! Lanes and counters on Redis or Valkey, shared by any number of processes.
//!
//! The server holds the whole index of what waits, by id; jobs stay in the Store. Every call is one script, so it is atomic
//! and costs one round trip. All keys carry one hash tag, so a cluster accepts every script.

mod answer;
mod counters;
mod error;
mod examine;
mod guard;
mod lanes;
mod link;
mod names;
mod options;
mod scripts;
mod way;

pub use counters::RedisCounters;
pub use error::ConnectError;
pub use examine::examine;
pub use guard::{Mark, MarkLives, RedisGuard};
pub use lanes::RedisLanes;
pub use link::Counters as LaneCounters;
pub use options::Options;
