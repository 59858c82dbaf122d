//! The worker library: link it, give it handlers, and it runs jobs of a Lockgate server.
//!
//! ```no_run
//! use lockgate_worker::{JobError, Worker};
//! use serde::Deserialize;
//!
//! #[derive(Deserialize)]
//! struct Mail {
//!     to: String,
//! }
//!
//! # async fn example() -> Result<(), lockgate_worker::WorkerError> {
//! Worker::connect("http://127.0.0.1:8080")
//!     .slots(16)
//!     .handle("mail.send", |ctx, payload| async move {
//!         let mail: Mail = payload.json()?;
//!         if !mail.to.contains('@') {
//!             return Err(JobError::fatal("no address"));
//!         }
//!         ctx.progress(50, "half way");
//!         Ok(format!("sent to {}", mail.to))
//!     })
//!     .run()
//!     .await
//! # }
//! ```
//!
//! # What a handler can rely on
//! - A job is run at least once. Two attempts of one job may overlap when the server could not be reached for longer than
//!   its lease, unless the topic is registered with [`LeaseLoss::Stop`].
//! - An attempt ends when its timeout is over or the server no longer wants it: the handler's future is dropped at its next
//!   await point. A handler that computes for long without awaiting belongs into `spawn_blocking`.
//! - A target that is down is left alone, and its jobs wait without spending attempts, with [`Breakers`].
//! - A result is kept and sent until the server has stored it, over reconnects and, with [`Worker::journal`], over a crash.

mod breaker;
mod check;
mod children;
mod context;
mod error;
#[cfg(feature = "builtin-handlers")]
pub mod handlers;
mod payload;
mod registry;
mod session;
mod trace;
mod wall;
mod worker;

pub use crate::breaker::{BreakerCounts, BreakerRules, Breakers, CircuitOpen, Permit};
pub use crate::check::Act;
pub use crate::children::{Child, ChildOutcome, Gathered, Wait};
pub use crate::context::Context;
pub use crate::error::{JobError, WorkerError};
pub use crate::payload::Payload;
pub use crate::registry::LeaseLoss;
pub use crate::session::AdaptiveSlots;
pub use crate::worker::Worker;
pub use lockgate_contract::trace::{Span, SpanKind, SpanValue, TraceParent};
pub use lockgate_tls::grpc::{Access, AccessError, Bearer, Credential, TlsFiles as Tls};
