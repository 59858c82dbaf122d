//! What became of a request.

use lockgate_core::request::FieldError;
use lockgate_proto::v1;
use serde::Serialize;
use utoipa::ToSchema;

use crate::name_set::JobStateName;

/// An acknowledged job.
#[derive(Debug, Serialize, ToSchema)]
pub struct Submitted {
    pub job_id: String,
    pub state: JobStateName,
    /// What the acknowledgement means: `fsynced` when the job survives a power cut.
    pub ack: String,
    /// The id or key already had this job; nothing was created.
    pub existing: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct SubmittedJobs {
    /// In the order sent.
    pub jobs: Vec<SubmittedItem>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum SubmittedItem {
    Accepted(Submitted),
    Refused { error: ItemError },
}

#[derive(Debug, Serialize, ToSchema)]
pub struct ItemError {
    pub code: String,
    pub message: String,
    /// Every field that was refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldProblem>,
    /// When sending it again makes sense, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Changed {
    pub job_id: String,
    pub state: JobStateName,
}

/// A field that was refused, and why.
#[derive(Debug, Serialize, ToSchema)]
pub struct FieldProblem {
    pub field: String,
    pub message: String,
}

impl From<v1::SubmitJobResponse> for Submitted {
    fn from(wire: v1::SubmitJobResponse) -> Self {
        Self { state: wire.state().into(), job_id: wire.job_id, ack: wire.ack, existing: wire.existing }
    }
}

impl From<FieldError> for FieldProblem {
    fn from(FieldError { field, message }: FieldError) -> Self {
        Self { field, message }
    }
}
