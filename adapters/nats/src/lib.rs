//! Doorbells and messages on NATS.
//!
//! [`NatsBus`] rings doorbells over plain subjects: nothing is stored, and a lost ring only costs waiting.
//! [`IngressSubjects`] takes submits and results from `sys.job.submit` and `sys.job.result`, stored by JetStream and
//! answered after the commit. [`WorkerSubjects`] connects workers without a stream. [`Relay`] publishes outbox rows.

mod bus;
mod error;
mod examine;
mod ingress;
mod link;
mod options;
mod pace;
mod relay;
mod subscription;
mod tls;
mod transport;
mod worker_subjects;

pub use bus::{BusCounters, NatsBus};
pub use error::ConnectError;
pub use examine::examine;
pub use ingress::api::{Ingress, IngressAnswer, Submission};
pub use ingress::guard::{DuplicateGuard, GuardAway, IN_FLIGHT_FOR, MemoryGuard, MessageStanding, PROCESSED_FOR};
pub use ingress::{DeliveryTerms, IngressCounters, IngressSubjects, Served};
pub use link::ConnectionHealth;
pub use options::{Options, QUEUE_GROUP};
pub use relay::Relay;
pub use transport::Transport;
pub use worker_subjects::{BusPublisher, Unsent, WorkerHost, WorkerSubjects};
