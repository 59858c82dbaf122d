//! The client library: submit jobs to a Lockgate server, and read, cancel and explain them.
//!
//! ```no_run
//! use lockgate_client::{Client, NewJob};
//!
//! # async fn example() -> Result<(), lockgate_client::ClientError> {
//! let client = Client::connect("http://127.0.0.1:8080").open()?;
//! let job = client.submit(NewJob::new("job.echo").payload(&"hello").idempotency_key("greeting-1")).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What a caller can rely on
//! - A submit that was answered is stored. One whose answer was lost ([`ClientError::is_retryable`]) is safe to repeat when the job
//!   has an idempotency key or an id: the server answers with the job it already has.
//! - Every call has a time limit ([`ClientBuilder::call_timeout`]).

mod builder;
mod error;
mod jobs;
mod new_job;
mod record;
mod state;

pub use crate::builder::{Client, ClientBuilder};
pub use crate::error::{ClientError, FieldFault};
pub use crate::jobs::{Explanation, JobHandle, JobLogLine};
pub use crate::new_job::{NewJob, Retries};
pub use crate::record::{AttemptRecord, JobFailure, JobRecord};
pub use crate::state::{JobState, RunState};
pub use lockgate_contract::Priority;
pub use lockgate_tls::grpc::{Credential, TlsFiles};
