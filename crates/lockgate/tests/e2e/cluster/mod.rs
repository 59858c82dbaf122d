//! Several processes on PostgreSQL, Redis and NATS.

mod faults;
mod fleet;
mod health;
mod letters;
mod outposts;
mod rollout;
mod schedules;
mod shared;
mod stage;
mod tls;

pub(crate) use stage::{Ground, worker};
