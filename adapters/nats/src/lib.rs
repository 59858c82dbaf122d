//! Doorbells and messages on NATS.
//!
//! [`NatsBus`] rings doorbells over plain subjects: nothing is stored, a lost ring costs waiting and nothing else.
//! [`Doors`] takes submits and results from `sys.job.submit` and `sys.job.result`, stored by JetStream and answered after
//! the commit. [`Posts`] speaks with workers that have no stream. [`Relay`] publishes outbox rows.

mod bus;
mod doors;
mod error;
mod examine;
mod link;
mod options;
mod pace;
mod posts;
mod relay;
mod subscription;
mod tls;
mod transport;

pub use bus::{Counters, NatsBus};
pub use doors::guard::{Guard, GuardAway, IN_FLIGHT_FOR, MemoryGuard, PROCESSED_FOR, Standing};
pub use doors::ingress::{Answer, Ingress, Submission};
pub use doors::{DoorCounters, Doors, Served, Terms};
pub use error::ConnectError;
pub use examine::examine;
pub use link::Health;
pub use options::Options;
pub use posts::{Crew, Pen, Posts, Unsent};
pub use relay::Relay;
pub use transport::Transport;
