//! The JSON of the contract. Absent values are left out; times are RFC 3339 in UTC with milliseconds.

mod access;
mod approval;
mod dag;
mod dead_letter;
mod governance;
mod health;
mod history;
mod job;
mod names;
mod overview;
mod pools;
mod retry;
mod schedule;
mod submitted;
mod tenants;
mod verdict;
mod why;

use lockgate_core::request::Json;
use serde_json::value::RawValue;

pub(super) use access::{Credential, Credentials, MadeKey, WhoAmI};
pub(super) use approval::{Answered, Approvals, AskedApproval};
pub(super) use dag::{Dag, Dags, Run, Runs, Started, StoredDag};
pub(super) use dead_letter::{DeadLetter, DeadLetters, Replayed};
pub(super) use governance::{Activated, AuditRows, Breakers, Config, Configs, Policies, Verified};
pub(super) use health::Health;
pub(super) use history::{Event, LogLine, Logs, Progress};
pub(super) use job::{Job, Jobs};
pub(super) use names::{JobStateName, LanePriorityName, Name, RunStateName, Time};
pub(super) use overview::{Queues, Workers};
pub(super) use pools::{DrainedWorker, PoolChanged, Pools};
pub(super) use schedule::{AppliedSchedules, BegunBackfill, Schedule, Schedules, Slot, Slots};
pub(super) use submitted::{Changed, Submitted, SubmittedItem, SubmittedJobs};
pub(super) use tenants::{ErasedTenant, Tenants};
pub(super) use verdict::{Explained, OutputCheck, Verdict};
pub(super) use why::Why;

fn document(json: &Json) -> Option<Box<RawValue>> {
    RawValue::from_string(json.as_str().to_owned()).ok()
}
