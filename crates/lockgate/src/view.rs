//! The JSON of the REST contract, made from gRPC answers. `--json` prints exactly this.

mod access;
mod convert;
mod dag;
mod governance;
mod health;
mod pools;
mod schedule;
mod tenants;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

pub(crate) use lockgate_api::view::{
    Answered, Approval, Approvals, AskedApproval, Attempt, Changed, Children, Considered, Constraints, DeadLetter,
    DeadLetters, Event, Explained, Job, JobStateName, Jobs, LimitLook, LogLine, Logs, OutputCheck, PoolLook, Progress,
    Remediation, Replayed, Step, Submitted, Time, Verdict, Why,
};

pub(crate) use access::{Credential, Credentials, MadeKey, WhoAmI};
pub(crate) use dag::{Dag, Node, Run, Runs, StartedRun, StoredDag};
pub(crate) use governance::{Activated, AuditRow, AuditRows, Breakers, Config, Configs, Policies, Verified};
pub(crate) use health::{Health, HealthComponent, HealthFinding, HealthLeader, HealthLoop};
pub(crate) use pools::{DrainedWorker, Pool, PoolChanged, Pools};
pub(crate) use schedule::{AppliedSchedules, BegunBackfill, Schedule, Schedules, Slot, Slots};
pub(crate) use tenants::{ErasedTenant, Tenant, Tenants};

/// A JSON document carried as the text it came in.
pub(crate) type Json = Box<RawValue>;

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
    pub(crate) last_beat_at: Option<Time>,
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
    pub(crate) oldest_at: Option<Time>,
}
