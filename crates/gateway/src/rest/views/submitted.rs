//! What became of a request.

use lockgate_engine::{ApiError, Submitted as EngineSubmitted};
use serde::Serialize;
use utoipa::ToSchema;

use super::Name;
use super::names::JobStateName;
use crate::errors::retry_after_ms;
use crate::rest::problem::FieldProblem;

/// An acknowledged job.
#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Submitted {
    job_id: String,
    state: JobStateName,
    /// What the acknowledgement means: `fsynced` when the job survives a power cut.
    ack: &'static str,
    /// The id or key already had this job; nothing was created.
    existing: bool,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct SubmittedJobs {
    /// In the order sent.
    pub(in crate::rest) jobs: Vec<SubmittedItem>,
}

#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(in crate::rest) enum SubmittedItem {
    Accepted(Submitted),
    Refused { error: ItemError },
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct ItemError {
    code: &'static str,
    message: String,
    /// Every field that was refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldProblem>,
    /// When sending it again makes sense, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Changed {
    pub(in crate::rest) job_id: String,
    pub(in crate::rest) state: JobStateName,
}

impl Submitted {
    pub(in crate::rest) fn new(submitted: &EngineSubmitted, ack: &'static str) -> Self {
        let EngineSubmitted { job_id, state, existing } = submitted;
        Self { job_id: job_id.to_string(), state: Name(*state), ack, existing: *existing }
    }
}

impl SubmittedItem {
    pub(in crate::rest) fn new(answer: Result<EngineSubmitted, ApiError>, ack: &'static str) -> Self {
        match answer {
            Ok(submitted) => Self::Accepted(Submitted::new(&submitted, ack)),
            Err(error) => Self::Refused { error: error.into() },
        }
    }
}

impl From<ApiError> for ItemError {
    fn from(error: ApiError) -> Self {
        let (code, message, retry_after_ms) = (error.code(), error.to_string(), retry_after_ms(&error));
        let fields = if let ApiError::Invalid(fields) = error { fields } else { Vec::new() };
        Self { code, message, errors: fields.into_iter().map(FieldProblem::from).collect(), retry_after_ms }
    }
}
