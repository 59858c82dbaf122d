//! Bodies that clients send.

use std::collections::BTreeMap;

use lockgate_api::{JobBody, PriorityName, each_once};
use lockgate_core::ids::JobId;
use lockgate_core::job::Answer;
use lockgate_core::request::{Caller, FieldError};
use lockgate_engine::{ApprovalAnswer, ReplayRequest};
use lockgate_ports::DeadLetterQuery;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::body::part;
use crate::queries;
use crate::submit::ParsedJob;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewJobs)]
pub(super) struct BatchBody {
    /// 1 to 10,000 jobs; each is read, and accepted or refused, alone.
    #[schema(value_type = Vec<JobBody>, min_items = 1, max_items = 10000)]
    jobs: Vec<Box<RawValue>>,
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Cancel)]
pub(super) struct CancelBody {
    pub(super) reason: Option<String>,
}

/// An answer to the question policy asked.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Answer)]
pub(super) struct AnswerBody {
    /// What is answered, as it was seen: the job's.
    request_hash: String,
    /// The rule's that asks.
    rule_hash: String,
    /// Why, for the records.
    note: Option<String>,
    /// The caller knows that the payload is hidden from them. Without it such a caller cannot approve; rejecting needs nothing.
    #[serde(default)]
    acknowledge_hidden: bool,
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewNote)]
pub(super) struct NoteBody {
    /// Why, for the records.
    pub(super) note: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewConfig)]
pub(super) struct ConfigBody {
    /// Named in errors.
    pub(super) file: Option<String>,
    /// The content of the file, YAML.
    pub(super) text: String,
    /// Refused unless this version is in force.
    pub(super) expected_version: Option<u64>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Rollback)]
pub(super) struct RollbackBody {
    pub(super) snapshot: String,
    /// Refused unless this version is in force.
    pub(super) expected_version: Option<u64>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Erase)]
pub(super) struct EraseBody {
    /// The name of the tenant once more: nothing of it comes back.
    pub(super) confirm: String,
}

/// Which dead letters to replay, and how.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Replay)]
pub(super) struct ReplayBody {
    topic: Option<String>,
    priority: Option<PriorityName>,
    reason: Option<String>,
    /// Labels that the job must have.
    #[serde(default, deserialize_with = "each_once")]
    labels: BTreeMap<String, String>,
    /// Only say what would be replayed.
    #[serde(default)]
    dry_run: bool,
    /// Jobs a second; absent is as fast as possible.
    #[schema(minimum = 1)]
    rate: Option<u32>,
    /// At most this many.
    #[schema(minimum = 1)]
    limit: Option<u32>,
}

impl BatchBody {
    pub(super) fn read(&self) -> impl ExactSizeIterator<Item = ParsedJob> {
        self.jobs.iter().map(|job| part::<JobBody>(job).map_err(|error| vec![error])?.read())
    }
}

impl AnswerBody {
    pub(super) fn read(self, job_id: JobId, answer: Answer) -> Result<ApprovalAnswer, Vec<FieldError>> {
        let request_hash = queries::request_hash(&self.request_hash).map_err(|error| vec![error])?;
        let (rule_hash, note) = (self.rule_hash.into(), self.note.map(Into::into));
        let acknowledge_hidden = self.acknowledge_hidden;
        Ok(ApprovalAnswer { job_id, answer, note, request_hash, rule_hash, acknowledge_hidden })
    }
}

impl ReplayBody {
    pub(super) fn read(self, caller: &Caller) -> Result<ReplayRequest, Vec<FieldError>> {
        let mut errors = Vec::new();
        let reason = self.reason.map(|text| queries::reason(&text)).transpose().unwrap_or_else(|error| {
            errors.push(error);
            None
        });
        for (field, number) in [("rate", self.rate), ("limit", self.limit)] {
            if number == Some(0) {
                errors.push(FieldError::new(field, "must be at least 1"));
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let filter = DeadLetterQuery {
            // Looking at other tenants is one thing, acting on their jobs another.
            tenant: Some(caller.tenant.clone()),
            topic: self.topic.map(Into::into),
            priority: self.priority.map(Into::into),
            reason,
            labels: self.labels,
            cursor: None,
            limit: 0,
        };
        let limit = self.limit.map(|limit| limit as usize);
        Ok(ReplayRequest { filter, dry_run: self.dry_run, rate: self.rate, limit })
    }
}
