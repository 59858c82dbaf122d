//! The JSON of the REST contract, made from gRPC answers. `--json` prints exactly this.

mod convert;
mod dag;
mod schedule;

use serde_json::value::RawValue;

pub(crate) use lockgate_api::view::{
    Activated, Answered, Approval, Approvals, AskedApproval, Attempt, AuditRow, AuditRows, Breakers, Changed, Children,
    Config, Configs, Considered, Constraints, Credential, Credentials, DeadLetter, DeadLetters, DrainedWorker, Event,
    Explained, Health, HealthComponent, HealthFinding, HealthLeader, HealthLoop, Job, JobStateName, Jobs, LimitLook,
    LogLine, Logs, MadeKey, OutputCheck, Policies, Pool, PoolChanged, PoolLook, Pools, Progress, Queue, Queues, Remediation,
    Replayed, Step, Submitted, Tenant, Tenants, Time, Verdict, Verified, WhoAmI, Why, Worker, Workers,
};

pub(crate) use dag::{Dag, Node, Run, Runs, StartedRun, StoredDag};
pub(crate) use schedule::{AppliedSchedules, BegunBackfill, Schedule, Schedules, Slot, Slots};

/// A JSON document carried as the text it came in.
pub(crate) type Json = Box<RawValue>;
