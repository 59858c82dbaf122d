//! Lanes and counters on Redis or Valkey, shared by any number of processes.
//!
//! The server holds the whole index of waiting jobs, by id; the jobs themselves stay in the Store. Every call is one script,
//! so it is atomic and costs one round trip. All keys have one hash tag, so a cluster accepts every script.

mod answer;
mod counters;
mod error;
mod examine;
mod guard;
mod lane_server;
mod lanes;
mod names;
mod options;
mod scripts;
mod server_client;

pub use counters::RedisCounters;
pub use error::ConnectError;
pub use examine::examine;
pub use guard::{GuardMark, MarkLives, RedisGuard};
pub use lane_server::LaneCounters;
pub use lanes::RedisLanes;
pub use options::Options;
