//! Answers that are not made from messages yet.

mod access;
mod dag;
mod governance;
mod health;
mod names;
mod overview;
mod pools;
mod schedule;
mod tenants;

use lockgate_core::request::Json;
use serde_json::value::RawValue;

pub(super) use access::{Credential, Credentials, MadeKey, WhoAmI};
pub(super) use dag::{Dag, Dags, Run, Runs, Started, StoredDag};
pub(super) use governance::{Activated, AuditRows, Breakers, Config, Configs, Policies, Verified};
pub(super) use health::Health;
use names::{Name, Time};
pub(super) use overview::{Queues, Workers};
pub(super) use pools::{DrainedWorker, PoolChanged, Pools};
pub(super) use schedule::{AppliedSchedules, BegunBackfill, Schedule, Schedules, Slot, Slots};
pub(super) use tenants::{ErasedTenant, Tenants};

fn document(json: &Json) -> Option<Box<RawValue>> {
    RawValue::from_string(json.as_str().to_owned()).ok()
}
