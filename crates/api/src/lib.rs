//! The one wire model: each entity from the words of `core` to the messages of the public contract, and from those to the
//! JSON that REST answers with and the command line prints.
//!
//! A file has an entity whole, so that a new field of it is written in one place.

mod access;
mod approval;
mod dag;
mod dead_letter;
mod each_once;
mod governance;
mod health;
mod history;
mod job;
mod name_set;
mod names;
mod output;
mod overview;
mod pools;
mod request;
mod result;
mod retry;
mod run;
mod schedule;
mod subject;
mod submitted;
mod tenants;
mod time;
mod verdict;
mod why;

use lockgate_core::request::Json;
use serde_json::value::RawValue;

pub use access::credential_to_wire;
pub use approval::{answered, approval};
pub use job::{job, platform_labels};
pub use names::{known_priority, known_state};
pub use output::{output_verdict_from_wire, output_verdict_to_wire};
pub use request::{json, judged, new_job};
pub use result::outcome;
pub use run::{known_run_state, percent, run_changes, run_event, run_head, run_whole};
pub use subject::{subject_from_wire, subject_to_wire};
pub use verdict::{access_to_wire, explanation_from_wire, explanation_to_wire, verdict_from_wire, verdict_to_wire};

/// What clients send. A field that is not known is refused.
pub mod body {
    pub use crate::access::{CertificateBody, KeyBody, RotateBody};
    pub use crate::approval::{AnswerBody, NoteBody};
    pub use crate::dag::DagBody;
    pub use crate::dead_letter::{DiscardBody, ReplayBody};
    pub use crate::governance::{ConfigBody, RollbackBody};
    pub use crate::request::{BatchBody, CancelBody, JobBody, PriorityName, RetryNowBody};
    pub use crate::run::{CancelRunBody, RerunBody, ResolveBody, StartBody};
    pub use crate::schedule::{BackfillBody, SchedulesBody};
    pub use crate::tenants::EraseBody;
}

/// The JSON of the contract. Absent values are left out; times are RFC 3339 in UTC with milliseconds.
pub mod view {
    pub use crate::access::{Credential, Credentials, Grant, MadeKey, WhoAmI};
    pub use crate::approval::{Answered, Approval, Approvals, AskedApproval, Vote};
    pub use crate::dag::{Dag, Dags, StoredDag};
    pub use crate::dead_letter::{DeadLetter, DeadLetters, Discard, Replayed};
    pub use crate::governance::{Activated, AuditRow, AuditRows, Breaker, Breakers, Config, Configs, Policies, Verified};
    pub use crate::health::{Health, HealthComponent, HealthFinding, HealthLeader, HealthLoop};
    pub use crate::history::{Event, LogLine, Logs, Progress};
    pub use crate::job::{Attempt, Children, Failure, Job, Jobs};
    pub use crate::name_set::*;
    pub use crate::output::{Finding, OutputCheck};
    pub use crate::overview::{Queue, Queues, Worker, Workers};
    pub use crate::pools::{DrainedWorker, Pool, PoolChanged, Pools};
    pub use crate::retry::RetryPolicy;
    pub use crate::run::{Node, Run, RunError, RunEvent, Runs, StartedRun, Undo};
    pub use crate::schedule::{
        AppliedSchedule, AppliedSchedules, Backfill, BegunBackfill, Schedule, Schedules, Slot, Slots,
    };
    pub use crate::submitted::{Changed, FieldProblem, ItemError, Submitted, SubmittedItem, SubmittedJobs};
    pub use crate::tenants::{ErasedTenant, Tenant, TenantQuota, Tenants};
    pub use crate::time::Time;
    pub use crate::verdict::{ApprovalTerms, Constraints, Explained, Remediation, Step, Verdict};
    pub use crate::why::{Considered, LimitLook, PoolLook, Why};
}

/// What has a message, or a part of one, of its own.
pub trait ToWire {
    type Wire;

    fn to_wire(&self) -> Self::Wire;
}

/// What is read off the wire whatever stands there.
pub(crate) trait FromWire {
    type Wire;

    fn from_wire(wire: Self::Wire) -> Self;
}

/// JSON text as wire bytes. The text is shared, not copied.
pub fn json_bytes(json: &Json) -> bytes::Bytes {
    struct Shared(Json);

    impl AsRef<[u8]> for Shared {
        fn as_ref(&self) -> &[u8] {
            self.0.as_str().as_bytes()
        }
    }

    bytes::Bytes::from_owner(Shared(json.clone()))
}

/// JSON as it came over the wire, to be written as it is. No bytes mean absent.
fn document(json: &[u8]) -> Option<Box<RawValue>> {
    serde_json::from_slice(json).ok()
}

/// proto3 has no absent text: what is absent travels as an empty one.
fn text(text: Option<&str>) -> String {
    text.unwrap_or_default().to_owned()
}

/// An empty text off the wire means absent.
fn present(text: String) -> Option<String> {
    if text.is_empty() { None } else { Some(text) }
}
