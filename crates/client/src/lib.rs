//! The client library: submit jobs to a Lockgate server, wait for their results, and do what people do with jobs.
//!
//! ```no_run
//! use lockgate_client::{Client, NewJob};
//!
//! # async fn example() -> Result<(), lockgate_client::ClientError> {
//! let client = Client::connect("http://127.0.0.1:8080").open()?;
//! let job = client.submit(NewJob::new("job.echo").payload(&"hello").idempotency_key("greeting-1")).await?;
//! let answer: String = job.result().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What a caller can rely on
//! - A submit that was answered is stored. One whose answer was lost ([`ClientError::is_retryable`]) is safe to repeat when the job
//!   has an idempotency key or an id: the server answers with the job it already has.
//! - [`JobHandle::result`] and [`JobUpdates`] go on over a restart of the server, without gaps and without doubles.
//! - Every call has a time limit ([`ClientBuilder::call_timeout`]); waiting for a job has none unless you give it one.

mod approvals;
mod builder;
mod dead_letters;
mod error;
mod jobs;
mod new_job;
mod record;
mod runs;
mod state;
#[cfg(feature = "testing")]
mod testing;
mod watch;

pub use crate::approvals::{ApprovalAnswered, ApprovalVote, PendingApproval};
pub use crate::builder::{Client, ClientBuilder};
pub use crate::dead_letters::{DeadLetterFilter, DeadLetterRecord, ReplayCounts};
pub use crate::error::{ClientError, FieldFault};
pub use crate::jobs::{Explanation, JobHandle, JobLogLine};
pub use crate::new_job::{NewJob, Retries};
pub use crate::record::{AttemptRecord, JobFailure, JobRecord};
pub use crate::runs::{NewRun, NodeRecord, RunHandle, RunRecord};
pub use crate::state::{JobState, RunState};
#[cfg(feature = "testing")]
pub use crate::testing::{TestServer, TestServerBuilder, TestServerError};
pub use crate::watch::{JobEvent, JobUpdate, JobUpdates, Progress};
pub use lockgate_contract::Priority;
pub use lockgate_tls::grpc::{Credential, TlsFiles};
