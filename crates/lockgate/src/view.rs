//! The JSON of the REST contract, made from gRPC answers. `--json` prints exactly this.

mod access;
mod approval;
mod convert;
mod dag;
mod governance;
mod health;
mod pools;
mod schedule;
mod tenants;
mod verdict;
mod why;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

pub(crate) use access::{Credential, Credentials, MadeKey, WhoAmI};
pub(crate) use approval::{Answered, Approval, Approvals, AskedApproval};
pub(crate) use convert::state;
pub(crate) use dag::{Dag, Node, Run, Runs, StartedRun, StoredDag};
pub(crate) use governance::{Activated, AuditRow, AuditRows, Breakers, Config, Configs, Policies, Verified};
pub(crate) use health::{Health, HealthComponent, HealthFinding, HealthLeader, HealthLoop};
pub(crate) use pools::{DrainedWorker, Pool, PoolChanged, Pools};
pub(crate) use schedule::{AppliedSchedules, BegunBackfill, Schedule, Schedules, Slot, Slots};
pub(crate) use tenants::{ErasedTenant, Tenant, Tenants};
pub(crate) use verdict::{Explained, OutputCheck, Remediation, Step, Verdict};
pub(crate) use why::{Considered, LimitLook, PoolLook, Why};

/// A time that reads as RFC 3339 in UTC with milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moment(pub(crate) Timestamp);

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:.3}", self.0))
    }
}

/// A JSON document carried as the text it came in.
pub(crate) type Json = Box<RawValue>;

#[derive(Debug, Serialize)]
pub(crate) struct Submitted {
    pub(crate) job_id: String,
    pub(crate) state: &'static str,
    pub(crate) ack: String,
    /// The id or key already had this job.
    pub(crate) existing: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Job {
    pub(crate) job_id: String,
    pub(crate) tenant: String,
    pub(crate) actor: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) actor_type: Option<String>,
    pub(crate) actor_verified: bool,
    pub(crate) topic: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) capability: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) risk_tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) payload: Option<Json>,
    /// Payload, environment and result are not for this caller. Not in lists.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) payload_hidden: bool,
    pub(crate) priority: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) labels: BTreeMap<String, String>,
    /// What the platform says about the job beside the client's labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) platform_labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) env: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) idempotency_key: Option<String>,
    pub(crate) max_attempts: u32,
    pub(crate) retry: JobRetry,
    pub(crate) timeout_ms: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) requires: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trace_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) concurrency_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_job_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) child_key: Option<String>,
    /// Of a job that submitted some. Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) children: Option<Children>,
    pub(crate) state: &'static str,
    pub(crate) phase: &'static str,
    pub(crate) life: u32,
    /// Number of the latest attempt that was sent to a worker; 0 before the first.
    pub(crate) attempt: u32,
    /// Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attempts: Option<Vec<Attempt>>,
    pub(crate) failures: u32,
    pub(crate) losses: u32,
    pub(crate) submitted_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) due_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deadline_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_error: Option<Failure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) progress: Option<Progress>,
    /// Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) verdict: Option<Verdict>,
    /// Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) approval: Option<AskedApproval>,
    /// Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<OutputCheck>,
    pub(crate) request_hash: String,
}

/// The children of a job's current life.
#[derive(Debug, Serialize)]
pub(crate) struct Children {
    pub(crate) total: u64,
    pub(crate) live: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waits_until: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) on_timeout: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    pub(crate) reason: String,
    pub(crate) message: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct Attempt {
    pub(crate) no: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) worker_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dispatched_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) started_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Progress {
    pub(crate) percent: u32,
    pub(crate) message: String,
    pub(crate) at: Option<Moment>,
}

/// How attempts of a job are tried again.
#[derive(Debug, Default, Serialize)]
pub(crate) struct JobRetry {
    pub(crate) base_ms: u64,
    pub(crate) factor_percent: u32,
    pub(crate) cap_ms: u64,
    pub(crate) jitter_percent: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total_ms: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) non_retryable: Vec<String>,
    pub(crate) losses: u32,
}

#[derive(Debug, Serialize)]
pub(crate) struct Jobs {
    pub(crate) jobs: Vec<Job>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Event {
    pub(crate) n: u64,
    pub(crate) at: Option<Moment>,
    pub(crate) kind: String,
    pub(crate) attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) worker_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) actor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Changed {
    pub(crate) job_id: String,
    pub(crate) state: &'static str,
}

#[derive(Debug, Serialize)]
pub(crate) struct Logs {
    pub(crate) lines: Vec<LogLine>,
}

#[derive(Debug, Serialize)]
pub(crate) struct LogLine {
    pub(crate) no: u64,
    pub(crate) attempt: u32,
    pub(crate) at: Option<Moment>,
    pub(crate) line: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct DeadLetters {
    pub(crate) dead_letters: Vec<DeadLetter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct DeadLetter {
    pub(crate) job_id: String,
    pub(crate) tenant: String,
    pub(crate) topic: String,
    pub(crate) priority: String,
    pub(crate) state: &'static str,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) attempts: u32,
    pub(crate) life: u32,
    pub(crate) at: Option<Moment>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) labels: BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Replayed {
    pub(crate) matched: u64,
    pub(crate) replayed: u64,
    pub(crate) no_room: u64,
    pub(crate) left_out: u64,
    pub(crate) job_ids: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Workers {
    pub(crate) workers: Vec<Worker>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Worker {
    pub(crate) worker_id: String,
    pub(crate) session: String,
    pub(crate) pool: String,
    pub(crate) topics: Vec<String>,
    pub(crate) capabilities: Vec<String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) slots: u32,
    pub(crate) busy: u32,
    pub(crate) last_beat_at: Option<Moment>,
    pub(crate) status: String,
    pub(crate) active_jobs: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu_load: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gpu_utilization: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory_load: Option<u32>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Queues {
    pub(crate) queues: Vec<Queue>,
    pub(crate) dead_letters: BTreeMap<String, u64>,
    pub(crate) live: u64,
    pub(crate) ended: u64,
    pub(crate) held: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Queue {
    /// Empty when no pool may take its jobs.
    pub(crate) pool: String,
    pub(crate) priority: String,
    pub(crate) tenant: String,
    pub(crate) shape: String,
    pub(crate) waiting: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) oldest_at: Option<Moment>,
}
